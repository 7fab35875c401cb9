import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { type EventStore, type NewEvent, RevisionConflict } from '../../engines/event-store/port';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { migrate } from '../../engines/postgres/migrate';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { type Cluster, startCluster } from './support/cluster';
import { dose, SEED, seeded, sleep, until } from './support/dose';

const NODES = 3;

/** Rows 4 and 6: many writers of several nodes on one log of domain events. */
describe('writers race', () => {
  let cluster: Cluster;
  let url: string;
  let stores: EventStore[];
  const closers: (() => Promise<unknown>)[] = [];
  const random = seeded(SEED);
  /** Transactions of before that ended after others, each way. */
  const held = { commit: 0, rollback: 0 };

  beforeAll(async () => {
    cluster = await startCluster();
    url = await cluster.createDatabase();
    await migrate(url);
    stores = await Promise.all(Array.from({ length: NODES }, node));
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
    await cluster?.dispose();
  });

  /** What a process of its own would have. */
  async function node(): Promise<EventStore> {
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    pool.on('error', () => undefined); // shows in the statement
    const wakeups = createPostgresWakeups({ url });
    const store = await createPostgresEventStore({ pool, wakeups });
    closers.push(
      () => pool.end(),
      () => wakeups.close(),
      () => store.close(),
    );
    return store;
  }

  const happened = (data = {}): NewEvent => ({ id: randomUUID(), type: 'thing:happened', data });

  /** An append whose transaction stays open for a while, and is then committed or undone. */
  async function hold(client: pg.Client, stream: string): Promise<void> {
    const { id, type } = happened();
    await client.query('begin');
    await client.query(
      "select * from append_domain_events('{}', '{1}', '{1}', '{1}', $1, '{-2}', '{1}', $2, '{1}', '{1}', $2, $3, '{}')",
      [stream, id, type],
    );
    await sleep(random() * 200);
    const end = random() < 0.6 ? 'commit' : 'rollback';
    await client.query(end);
    held[end] += 1;
  }

  test('row 4: transactions that began earlier commit later, or never: every tail sees every event, in the order of the log', async () => {
    const seen = stores.map(() => [] as string[]);
    const tails = stores.map((store, n) =>
      store.subscribe({ after: null }, async ({ events }) => void seen[n]!.push(...events.map(({ id }) => id))),
    );
    const acked: string[] = [];
    let over = false;
    const writers = Array.from({ length: 12 }, async (_, n) => {
      while (!over) {
        const event = happened();
        const stream = `s${Math.floor(random() * 8)}`;
        await stores[n % NODES]!.append([{ stream, expected: 'any', events: [event] }], {});
        acked.push(event.id);
      }
    });
    const holders = Array.from({ length: 3 }, async () => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      while (!over) {
        await hold(client, `s${Math.floor(random() * 8)}`);
        await sleep(random() * 100);
      }
      await client.end();
    });
    await sleep(dose(5000, 300_000));
    over = true;
    await Promise.all([...writers, ...holders]);

    const log: string[] = (await cluster.query(url, 'select id from domain_events order by position')).map(
      ({ id }) => id,
    );
    await until(() => seen.every((ids) => ids.length >= log.length), 'every tail');
    for (const tail of tails) await tail.stop();
    for (const ids of seen) expect(ids).toEqual(log);
    const stored = new Set(log);
    expect(acked.filter((id) => !stored.has(id))).toEqual([]);
    expect(acked.length).toBeGreaterThan(100);
    expect(Math.min(held.commit, held.rollback)).toBeGreaterThan(0);
    // What the open transactions committed is in the log beside what was acknowledged.
    expect(log).toHaveLength(acked.length + held.commit);
    const holes = `select stream from domain_events group by stream having count(*) <> max(revision) + 1 or min(revision) <> 0`;
    expect(await cluster.query(url, holes)).toEqual([]);
  });

  test(`row 6: 64 writers on one stream, ${dose(5, 200)} times: each revision has one winner, losers are told the true head`, async () => {
    for (let round = 0; round < dose(5, 200); round += 1) {
      const stream = `hot-${round}`;
      const wins: number[] = [];
      /** Losers that were told a head which is not behind what they expected. */
      const misled: string[] = [];
      const writers = Array.from({ length: 64 }, async (_, writer) => {
        for (let expected: 'none' | number = 'none'; ;) {
          try {
            const { revisions } = await stores[writer % NODES]!.append(
              [{ stream, expected, events: [happened({ writer })] }],
              {},
            );
            return void wins.push(revisions[stream]!);
          } catch (error) {
            if (!(error instanceof RevisionConflict)) throw error;
            const told = error.actual ?? -1;
            if (told <= (expected === 'none' ? -1 : expected)) misled.push(`${expected}: ${told}`);
            expected = told;
          }
        }
      });
      await Promise.all(writers);
      expect(misled).toEqual([]);
      expect(wins.sort((a, b) => a - b)).toEqual(Array.from({ length: 64 }, (_, n) => n));
      const events = await stores[round % NODES]!.read(stream);
      expect(events.map(({ revision }) => revision)).toEqual(wins);
      expect(new Set(events.map(({ data }) => data['writer'])).size).toBe(64);
    }
  });
});
