import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { v7 } from 'uuid';
import { eventUserId } from '../../domain/events/event-users';
import { TOPICS } from '../../domain/common/records';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import type { Shares } from '../../engines/leases/port';
import type { Metrics } from '../../engines/metrics/port';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createRecordLog } from '../../engines/records/log';
import type { LoggedRecord } from '../../engines/records/port';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { eventLog } from '../../projections/events/events';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { writeOutbox } from '../../projections/runtime/outbox/outbox';
import { rebuild } from '../../projections/runtime/rebuild/rebuild';
import { createProjectionRuntime } from '../../projections/runtime/runtime';
import { cloneTables } from '../../projections/runtime/rebuild/shadow';
import { appendHistory, ask } from '../history';
import { type CaseResult, compare, type Contender, timed, type Work } from '../comparison';
import { peer, quiet, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { database } from '../system';

const ACCOUNTS = Array.from({ length: 16 }, () => v7());
const LIVE_TABLES = ['platform_event_logs', 'outbox', 'ledger'];
const noMetrics: Metrics = {
  counter: () => ({ inc: () => undefined }),
  gauge: () => ({ set: () => undefined }),
  histogram: () => ({ observe: () => undefined }),
};

/**
 * The event log over the record log (personal parts encrypted, a hundredth of the deliveries doubled): a rebuild, and
 * the live projector catching up from the beginning. Peers: COPY of ready rows into the same tables with the same
 * indexes, the same projection with one transaction per event, and emmett's projections with one INSERT per row. Units
 * are rows of the log.
 */
export const run = onPostgres(measure);

export type Opened = Awaited<ReturnType<typeof open>>;

/** Opens the dependencies of a rebuild, on one database. */
export async function open(url: string, keys: string, broker_id?: string) {
  const db = new PostgresDatabase({ url, name: 'bench', size: 8, pipeline: true }); // as the projector's
  const log_db = new PostgresDatabase({ url, name: 'bench log', size: 6 });
  const wakeups = createLocalWakeups();
  const broker = createPostgresBroker({ pool: log_db.pool, wakeups, id: broker_id });
  const subject_keys = createSubjectKeys({ db: log_db, master_keys: parseMasterKeys(keys) });
  const records = createRecordLog({ broker, subject_keys });
  const events = await createPostgresEventStore({ pool: log_db.pool, wakeups });
  await broker.ensureTopics([TOPICS.platform_events], 8);
  const close = async () => {
    await broker.close();
    await events.close();
    await wakeups.close();
    await db.close();
    await log_db.close();
  };
  return { url, db, broker, records, events, wakeups, close };
}

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const { engineCpu } = postgres;
  const url = await database(postgres, 'own');
  const keys = `bench:${randomBytes(32).toString('base64')}`;
  await migrate(url);
  const on = await open(url, keys);
  // Compatibility with the previous release; a table that a view reads cannot be cloned.
  await on.db.query('drop view ingested_ids');
  // A table that owns a sequence cannot be cloned either.
  await on.db.query('alter sequence outbox_ids owned by none');
  const count = options.smoke ? 2000 : 60_000;
  await appendHistory(url, keys, ACCOUNTS, count);
  // The first run is a silent build; the measured ones announce.
  await live(on);
  await reset(on);
  await live(on);
  const [{ rows }] = (await ask<{ rows: number }>(url, 'select count(*)::int as rows from platform_event_logs')) as [
    { rows: number },
  ];
  const history = await decoded(on);
  const expected = fold(history);
  const wrong: Record<string, number> = { live: await differing(on, expected) };

  const copy_log = await copier(on, ['platform_event_logs']);
  const copy_live = await copier(on, LIVE_TABLES);
  const one_by_one = await perEvent(postgres, history);
  const emmett = await emmettProjection(
    postgres,
    history.filter(({ id }) => expected.has(id)).slice(0, options.smoke ? 200 : 3000),
  );

  const each = (work: () => Promise<unknown>, units: number): Promise<Work> =>
    timed(engineCpu, async () => {
      await work();
      return units;
    });
  const rebuilding: Contender = {
    name: 'lumio rebuild',
    run: () => each(() => rebuild({ ...on, projections: [eventLog], name: 'event-log' }), rows),
  };
  const living: Contender = {
    name: 'lumio live',
    async run() {
      await reset(on);
      return each(() => live(on), rows);
    },
  };
  const copying = (name: string, copier: Copier): Contender => ({
    name,
    async run() {
      await copier.prepare();
      return each(() => copier.copy(), rows);
    },
  });
  const [rounds, ms] = options.smoke ? [1, 400] : [5, 3000];
  const common = { rounds, ms, engineCpu };
  const results: CaseResult[] = [
    await compare({
      ...common,
      name: 'rebuild from history (rows a second)',
      contenders: [rebuilding, copying('copy of the log', copy_log), one_by_one, emmett],
      subject: 'lumio rebuild',
      floors: { 'copy of the log': 0.6, 'one transaction per event': 10, emmett: 10 },
    }),
  ];
  wrong.rebuild = await differing(on, expected);
  results.push(
    await compare({
      ...common,
      name: 'live projector, catching up (rows a second)',
      contenders: [living, copying('copy of log, outbox, ids', copy_live), one_by_one, emmett],
      subject: 'lumio live',
      floors: { 'copy of log, outbox, ids': 0.6, 'one transaction per event': 10, emmett: 10 },
    }),
  );
  wrong.live_again = await differing(on, expected);
  await on.close();
  const checks = Object.entries(wrong).map(([name, n]) => check(`rows that differ from the fold (${name})`, n, 0));
  return report('project', results, { rows, records: count, checks }, options);
}

/** Unused, because a topic is divided by its partitions. */
const shares: Shares = {
  offer: (name) => {
    throw new Error(`${name} is of no topic`);
  },
  close: async () => undefined,
};

/** Runs the projector from its checkpoints until it has passed everything. */
async function live(on: Opened): Promise<void> {
  const jobs = { has: () => true, enqueueNamed: async () => undefined, wake: () => undefined };
  const of = { projections: [eventLog], jobs };
  const runtime = createProjectionRuntime({ ...on, shares, log: quiet, metrics: noMetrics, ...of });
  await runtime.start();
  const bounds = await on.broker.bounds(TOPICS.platform_events);
  const wanted = [...bounds.values()].reduce((sum, { next }) => sum + next, 0);
  const done = `select coalesce(sum(nullif(position, '')::bigint), 0)::int as done from checkpoints where projection = 'event-log'`;
  while ((await on.db.query<{ done: number }>(done))[0]!.done < wanted) await sleep(20);
  await runtime.stop();
}

/** Resets to the state before any projection, except that the checkpoints stay built: nothing is silent. */
async function reset({ db }: Opened): Promise<void> {
  await db.query('truncate platform_event_logs, event_log_counters, ledger, ledger_bodies, outbox, channel_heads');
  await db.query(`update checkpoints set position = '0', built = true, silent_to = null`);
}

async function decoded({ broker, records }: Opened): Promise<LoggedRecord[]> {
  const all: LoggedRecord[] = [];
  for (const [partition, { earliest }] of await broker.bounds(TOPICS.platform_events)) {
    for await (const some of broker.read(TOPICS.platform_events, partition, earliest)) {
      const { records: read, undecodable } = await records.decode(some);
      if (undecodable.length > 0) throw undecodable[0]!.error;
      all.push(...read);
    }
  }
  return all;
}

type ModelRow = [string, string, string, string, string | null, string | null, string, string];

const instant = (text: string) => new Date(text).toISOString();

/** Expected model: the first record of each external id, in order. */
function fold(history: readonly LoggedRecord[]): Map<string, string> {
  const rows = new Map<string, string>();
  const seen = new Set<string>();
  for (const { id, account_id, type, platform, external_id, raw, occurred_at } of history) {
    const key = `${account_id} ${external_id}`;
    if (external_id !== null && seen.has(key)) continue;
    seen.add(key);
    const row: ModelRow = [
      id,
      account_id,
      type,
      platform,
      external_id,
      eventUserId(platform, raw),
      raw,
      instant(occurred_at),
    ];
    rows.set(id, digest(row));
  }
  return rows;
}

const digest = (row: ModelRow) => createHash('sha256').update(JSON.stringify(row)).digest('base64');

/** Number of rows that are missing, too many, or different by a byte; the counters are checked as well. */
async function differing({ db }: Opened, expected: ReadonlyMap<string, string>): Promise<number> {
  const stored = await db.query(
    'select id, account_id, type, platform, external_id, user_id, raw, created_at from platform_event_logs',
  );
  let wrong = Math.abs(stored.length - expected.size);
  for (const row of stored) {
    const { id, account_id, type, platform, external_id, user_id, raw } = row;
    const model: ModelRow = [id, account_id, type, platform, external_id, user_id, raw, instant(row.created_at)];
    if (expected.get(id) !== digest(model)) wrong += 1;
  }
  const [counted] = await db.query<{ n: number }>('select coalesce(sum(count), 0)::int as n from event_log_counters');
  return wrong + Math.abs(counted!.n - expected.size);
}

interface Copier {
  prepare(): Promise<void>;
  copy(): Promise<void>;
}

/** COPYs the tables' present rows into empty clones, including indexes, in one durable transaction. */
async function copier({ db, url }: Opened, tables: readonly string[]): Promise<Copier> {
  const { from, to } = peer<typeof import('pg-copy-streams')>('pg-copy-streams');
  const shadow = `copied_${tables.length}`;
  await db.query(`create schema ${shadow}`);
  await db.transaction((tx) => cloneTables(tx, tables, shadow));
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const data = new Map<string, Buffer[]>();
  for (const table of tables) {
    const chunks: Buffer[] = [];
    for await (const chunk of client.query(to(`copy (select * from public.${table}) to stdout`)))
      chunks.push(chunk as Buffer);
    data.set(table, chunks);
  }
  await client.end();
  return {
    prepare: async () => void (await db.query(`truncate ${tables.map((table) => `${shadow}.${table}`).join(', ')}`)),
    async copy() {
      const copying = new pg.Client({ connectionString: url });
      await copying.connect();
      await copying.query('begin');
      for (const [table, chunks] of data) {
        const into = copying.query(from(`copy ${shadow}.${table} from stdin`));
        for (const chunk of chunks) if (!into.write(chunk)) await once(into, 'drain');
        into.end();
        await once(into, 'finish');
      }
      await copying.query('commit');
      await copying.end();
    },
  };
}

/** Projection, ledger and outbox with a transaction for each event. */
async function perEvent(postgres: BenchPostgres, history: readonly LoggedRecord[]): Promise<Contender> {
  const url = await database(postgres, 'per_event');
  await migrate(url);
  const db = new PostgresDatabase({ url, name: 'bench per event', size: 2 });
  return {
    name: 'one transaction per event',
    async run(ms) {
      await db.query('truncate platform_event_logs, event_log_counters, ledger, outbox, channel_heads');
      return timed(postgres.engineCpu, async () => {
        const end = Date.now() + ms;
        let n = 0;
        for (; Date.now() < end && n < history.length; n += 1) {
          const record = history[n]!;
          await db.transaction(async (tx) => {
            await writeOutbox(tx, await applyRecords(eventLog, [record], tx, { rebuilding: false }));
          });
        }
        return n;
      });
    },
  };
}

interface EmmettEvent {
  type: string;
  data: {
    id: string;
    account_id: string;
    type: string;
    platform: string;
    external_id: string | null;
    raw: string;
    created_at: string;
  };
}
interface Emmett {
  getPostgreSQLEventStore(url: string): {
    schema: { migrate(): Promise<unknown> };
    appendToStream(stream: string, events: EmmettEvent[]): Promise<unknown>;
    close(): Promise<void>;
  };
  postgreSQLRawBatchSQLProjection(options: object): object;
  rebuildPostgreSQLProjections(options: object): { start(): Promise<void>; close(): Promise<void> };
}

/** emmett's rebuild of a projection that writes a row of the same log for each event. */
async function emmettProjection(postgres: BenchPostgres, history: readonly LoggedRecord[]): Promise<Contender> {
  const emmett = peer<Emmett>('@event-driven-io/emmett-postgresql');
  const { SQL } = peer<{ SQL(parts: TemplateStringsArray, ...values: unknown[]): unknown }>('@event-driven-io/dumbo');
  const url = await database(postgres, 'emmett_projection');
  await migrate(url);
  const store = emmett.getPostgreSQLEventStore(url);
  await store.schema.migrate();
  for (let n = 0; n < history.length; n += 100) {
    const events = history
      .slice(n, n + 100)
      .map(({ id, account_id, type, platform, external_id, raw, occurred_at }) => {
        return { type: 'logged', data: { id, account_id, type, platform, external_id, raw, created_at: occurred_at } };
      });
    await store.appendToStream(`log-${n}`, events);
  }
  await store.close();
  const projection = emmett.postgreSQLRawBatchSQLProjection({
    name: 'log',
    canHandle: ['logged'],
    // Failures end emmett's consumer silently, so they are printed here.
    evolve: async (events: EmmettEvent[], context: { execute: { batchCommand(all: unknown[]): Promise<unknown> } }) => {
      const all = events.map(
        ({ data: e }) =>
          SQL`insert into platform_event_logs (id, account_id, type, platform, external_id, raw, created_at)
            values (${e.id}, ${e.account_id}, ${e.type}, ${e.platform}, ${e.external_id}, ${e.raw}, ${e.created_at})`,
      );
      await context.execute.batchCommand(all).catch((error: unknown) => {
        console.error('emmett:', error);
        throw error;
      });
      return [];
    },
  });
  return {
    name: 'emmett',
    async run() {
      // A second rebuild would continue from the first one's checkpoint.
      await ask(url, 'truncate platform_event_logs, emt_processors');
      const consumer = emmett.rebuildPostgreSQLProjections({ connectionString: url, projections: [projection] });
      const work = await timed(postgres.engineCpu, async () => {
        await consumer.start();
        return history.length;
      });
      await consumer.close();
      const [stored] = await ask<{ n: number }>(url, 'select count(*)::int as n from platform_event_logs');
      if (stored!.n !== history.length) throw new Error(`emmett projected ${stored!.n} of ${history.length} events`);
      return work;
    },
  };
}
