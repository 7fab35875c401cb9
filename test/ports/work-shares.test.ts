import { ProcessSession } from '../../engines/postgres/process-session';
import { createPostgresShares } from '../../engines/leases/shares';
import type { Campaign, Shares } from '../../engines/leases/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { pause } from '../../lib/async/signal';
import { type TestDatabase, testDatabase } from '../support/database';
import type { Logger } from '../../engines/log/port';
import type { Queryable } from '../../engines/postgres/port';
import { keptLog, silentLog } from '../support/log';
import { until } from '../support/projections';

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
    campaigns: Campaign[];
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

  function join(names: readonly string[], log: Logger = silentLog, heartbeat_ms = 100, db: Queryable = t.db): Node {
    const session = new ProcessSession({ connectionString: t.url }, silentLog);
    const shares = createPostgresShares({ db, session, wakeups, log, heartbeat_ms });
    const node: Node = {
      shares,
      session,
      campaigns: [],
      mine: () => [...doing].flatMap(([name, by]) => (by.has(node) ? [name] : [])).sort(),
    };
    nodes.push(node);
    for (const name of names) {
      const campaign = shares.offer(name, async (signal) => {
        const by = doing.get(name) ?? new Set();
        doing.set(name, by);
        if (by.size > 0) twice.push(name);
        begun += 1;
        by.add(node);
        await pause(2 ** 30, signal);
        by.delete(node);
      });
      node.campaigns.push(campaign);
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

  test('logs what it takes, takes over and gives', async () => {
    const log = keptLog();
    const a = join(NAMES);
    await shared(12);
    const b = join(NAMES, log);
    await shared(6, 6);
    nodes.splice(nodes.indexOf(a), 1);
    await a.shares.close();
    await a.session.close();
    await until(() => b.mine().length === 12);
    join(NAMES);
    await shared(6, 6);
    type Counts = { taken: number; taken_over: number; given: number };
    const lines = log.lines
      .filter(({ message }) => message === 'work changed hands')
      .map(({ facts }) => facts as Counts);
    const sum = (count: keyof Counts) => lines.reduce((total, line) => total + line[count], 0);
    expect([sum('taken'), sum('taken_over'), sum('given')]).toEqual([12, 12, 6]);
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

  test('a member that withdraws all names of a kind is followed at once, and left no names of that kind', async () => {
    const leaving = join([...NAMES, 'other:kind']);
    await until(() => leaving.mine().length === 13);
    // No round of this one comes by time within the test.
    const staying = join(NAMES, silentLog, 600_000);
    await until(async () => (await t.db.query('select 1 from work_members')).length === 2);
    await Promise.all(leaving.campaigns.slice(0, 12).map((campaign) => campaign.stop()));
    await until(() => staying.mine().length === 12);
    expect(leaving.mine()).toEqual(['other:kind']);
    const [first] = NAMES;
    // Offered again it takes part as a member that joins.
    leaving.shares.offer(first!, (signal) => pause(2 ** 30, signal));
    await until(async () => (await t.db.query("select 1 from work_members where '' = any (kinds)")).length === 2);
    expect(twice).toEqual([]);
  });

  test('a kind that a member leaves during its own round is followed at once', async () => {
    const looks = { leaving: 0, staying: 0 };
    let held = false;
    const waits: { before?: AbortSignal; after?: AbortSignal } = {};
    const counted = (of: keyof typeof looks): Queryable => ({
      query: async (text: string, values?: unknown[], name?: string) => {
        if (name !== 'work-look') return (await t.db.query(text, values, name)) as never;
        looks[of] += 1;
        if (of === 'leaving' && waits.before) await pause(Infinity, waits.before);
        const rows = await t.db.query(text, values, name);
        if (of === 'leaving' && waits.after) {
          held = true;
          await pause(Infinity, waits.after);
        }
        return rows as never;
      },
    });
    const leaving = join([...NAMES, 'other:kind'], silentLog, 100, counted('leaving'));
    await until(() => leaving.mine().length === 13);
    const staying = join(NAMES, silentLog, 600_000, counted('staying'));
    await until(() => staying.mine().length === 6);

    const [first, second] = [new AbortController(), new AbortController()];
    waits.after = first.signal;
    await until(() => held);
    // The look under way lists the kind for the member that leaves it now.
    await Promise.all(leaving.campaigns.slice(0, 12).map((campaign) => campaign.stop()));
    waits.before = second.signal;
    const seen_before = looks.staying;
    first.abort();
    await until(() => looks.staying > seen_before);
    second.abort();
    await until(() => staying.mine().length === 12);
    expect(leaving.mine()).toEqual(['other:kind']);
    expect(twice).toEqual([]);
  });

  test('a hold that a dead member wanted can be taken over by another', async () => {
    const full = join(NAMES);
    await shared(12);
    // The previous release removes the row of a dead member, and leaves its wishes.
    await t.db.query('update work_holds set wanted_by = gen_random_uuid(), change = nextval($1)', ['work_changes']);
    join(NAMES);
    await shared(6, 6);
    expect(full.mine()).toHaveLength(6);
    expect(twice).toEqual([]);
  });

  test('a process of the previous release that was taken for dead lists its names again, and is left what others give up', async () => {
    const session = new ProcessSession({ connectionString: t.url }, silentLog);
    await session.ready();
    const older = '00000000-0000-7000-8000-000000000002';
    const look = () =>
      t.db.query<{ name: string | null }>("select name from work_balance($1, $2, $3, '{}', '10 minutes')", [
        older,
        session.lock,
        NAMES,
      ]);
    await look();
    const node = join(NAMES);
    await until(async () => (await t.db.query('select 1 from work_members')).length === 2);
    await t.db.query("update work_members set renewed_at = '2020-01-01' where member = $1", [older]);
    await shared(12);
    await look();
    // The one beside it lists its names for it from then on, and keeps what it holds.
    await until(async () => (await t.db.query("select 1 from work_members where names <> '{}'")).length === 2);
    expect((await look()).filter(({ name }) => name !== null)).toEqual([]);
    expect(node.mine()).toEqual(NAMES);
    nodes.shift();
    await node.shares.close();
    await node.session.close();
    expect((await look()).filter(({ name }) => name !== null)).toHaveLength(12);
    expect(twice).toEqual([]);
    await session.close();
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
