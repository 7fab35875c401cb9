import { ProcessSession } from '../engines/postgres/process-session';
import { createPostgresShares } from '../engines/leases/shares';
import type { Shares } from '../engines/leases/port';
import { createLocalWakeups } from '../engines/wakeups/local';
import { pause } from '../kernel/signal';
import { type TestDatabase, testDatabase } from './support/database';
import { silentLog } from './support/log';
import { until } from './support/projections';

describe('work divided among processes', () => {
  let t: TestDatabase;
  const nodes: Node[] = [];
  const wakeups = createLocalWakeups();
  /** Who does a piece, as the pieces themselves see it. */
  let doing: Map<string, Set<Node>>;
  let twice: string[];
  /** Times that a piece was begun. */
  let begun: number;

  interface Node {
    shares: Shares;
    session: ProcessSession;
    mine(): string[];
  }

  beforeEach(async () => {
    t = await testDatabase();
    doing = new Map();
    twice = [];
    begun = 0;
  });
  afterEach(async () => {
    for (const { shares, session } of nodes.splice(0)) {
      await shares.close();
      await session.close();
    }
    await t.drop();
  });

  function join(names: readonly string[]): Node {
    const session = new ProcessSession({ connectionString: t.url }, silentLog);
    const shares = createPostgresShares({ db: t.db, session, wakeups, log: silentLog, heartbeat_ms: 100 });
    const node: Node = {
      shares,
      session,
      mine: () => [...doing].flatMap(([name, by]) => (by.has(node) ? [name] : [])).sort(),
    };
    nodes.push(node);
    for (const name of names) {
      shares.offer(name, async (signal) => {
        const by = doing.get(name) ?? new Set();
        doing.set(name, by);
        if (by.size > 0) twice.push(name);
        begun += 1;
        by.add(node);
        await pause(2 ** 30, signal);
        by.delete(node);
      });
    }
    return node;
  }
  const NAMES = Array.from({ length: 12 }, (_, n) => `piece-${String(n).padStart(2, '0')}`);
  const shared = async (...sizes: number[]) =>
    until(() => {
      const counts = nodes.map((node) => node.mine().length);
      return counts.reduce((sum, n) => sum + n, 0) === NAMES.length && sizes.every((size, n) => counts[n] === size);
    });

  test('one does all; who joins gets a fair part; who leaves gives it back at once; none is ever done twice', async () => {
    const a = join(NAMES);
    await shared(12);
    join(NAMES);
    await shared(6, 6);
    join(NAMES);
    await shared(4, 4, 4);
    nodes.splice(nodes.indexOf(a), 1);
    await a.shares.close();
    await a.session.close();
    await shared(6, 6);
    expect(twice).toEqual([]);
  });

  test('a process that dies without a word is followed as soon as its session is gone', async () => {
    const dead = new ProcessSession({ connectionString: t.url }, silentLog);
    await dead.ready();
    // What a killed process leaves: its rows, and nobody who would renew them.
    const died = '00000000-0000-7000-8000-000000000000';
    await t.db.query("select * from work_balance($1, $2, $3, '{}', '10 minutes')", [died, dead.lock, NAMES]);
    join(NAMES);
    await until(async () => (await t.db.query('select 1 from work_members')).length === 2);
    expect(nodes[0]!.mine()).toEqual([]);
    await dead.close();
    await shared(12);
  });

  test('a piece that only some offer goes to one of these, and one that is withdrawn to the others', async () => {
    const some = join(NAMES.slice(0, 4));
    const most = join(NAMES.slice(2));
    await until(() => some.mine().length + most.mine().length === 12);
    expect(some.mine().every((name) => NAMES.slice(0, 4).includes(name))).toBe(true);
    expect(most.mine()).toEqual(expect.arrayContaining(NAMES.slice(4)));
    await some.shares.close();
    await until(() => most.mine().length === 10);
    expect(most.mine()).toEqual(NAMES.slice(2));
    expect(twice).toEqual([]);
  });

  test('a piece that comes and goes moves no other', async () => {
    join(NAMES);
    join(NAMES);
    await shared(6, 6);
    const before = nodes.map((node) => node.mine());
    const times = begun;
    const ended = new Set<string>();
    const added = nodes.map(({ shares }, n) =>
      shares.offer('added', async (signal) => {
        doing.set('added', new Set([nodes[n]!]));
        await pause(2 ** 30, signal);
        doing.delete('added');
        ended.add('added');
      }),
    );
    await until(() => doing.has('added'));
    for (const campaign of added) await campaign.stop();
    await until(() => ended.has('added'));
    // Two rounds later the row is gone, and everybody has seen it.
    await until(async () => (await t.db.query("select 1 from work_holds where name = 'added'")).length === 0);
    expect(nodes.map((node) => node.mine())).toEqual(before);
    expect(begun).toBe(times);
  });

  test('a process of the previous release beside it keeps its holds, and takes free work by names', async () => {
    const session = new ProcessSession({ connectionString: t.url }, silentLog);
    await session.ready();
    const older = '00000000-0000-7000-8000-000000000001';
    const look = (release: string[] = []) =>
      t.db.query<{ name: string | null; wanted: boolean }>(
        "select name, wanted from work_balance($1, $2, $3, $4, '10 minutes')",
        [older, session.lock, NAMES, release],
      );
    expect((await look()).filter(({ name }) => name !== null)).toHaveLength(12);
    const node = join(NAMES);
    // It lists its names, so that the process of the previous release gives up every second one.
    let surplus: string[] = [];
    await until(async () => {
      surplus = (await look()).flatMap(({ name, wanted }) => (wanted ? [] : [name!]));
      return surplus.length === 6;
    });
    expect(node.mine()).toEqual([]);
    await look(surplus);
    await until(() => node.mine().length === 6);
    expect(node.mine()).toEqual(surplus.sort());
    await t.db.query('select work_leave($1)', [older]);
    await shared(12);
    await until(async () => (await t.db.query("select 1 from work_members where names <> '{}'")).length === 0);
    await session.close();
  });

  test('work that fails begins again on the process that holds it', async () => {
    const node = join([]);
    let tries = 0;
    node.shares.offer('failing', async (signal) => {
      tries += 1;
      if (tries === 1) throw new Error('planted');
      await pause(2 ** 30, signal);
    });
    await until(() => tries === 2);
  });
});
