import { createHash } from 'node:crypto';
import type pg from 'pg';
import { v7 as uuid } from 'uuid';
import { TOPICS, type RecordEnvelope } from '../../domain/common/records';
import { UPCASTERS } from '../../bin/areas';
import type { Broker } from '../../engines/broker/port';
import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { fedEventStore } from '../../engines/event-store/feed/feed';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import type { Metrics } from '../../engines/metrics/port';
import type { PostgresDatabase } from '../../engines/postgres/pool';
import type { Queryable } from '../../engines/postgres/port';
import { createRecordLog } from '../../engines/records/log';
import type { RecordLog } from '../../engines/records/port';
import type { SubjectKeys } from '../../privacy/subject-keys/port';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import type { Shares } from '../../engines/leases/port';
import { createPostgresShares } from '../../engines/leases/shares';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createLocalWakeups } from '../../engines/wakeups/local';
import type { Wakeups } from '../../engines/wakeups/port';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import {
  DataError,
  domainEvents,
  projection,
  topic,
  type ChannelMessage,
  type Projection,
  type RecordProjection,
  type EventProjection,
} from '../../kernel/projection';
import { initialiseCheckpoint } from '../../projections/runtime/drive/checkpoint-init';
import { START_AUTOMATION } from '../../domain/automation/automation-runs';
import { createProjectionRuntime, type ProjectionRuntimeDeps } from '../../projections/runtime/runtime';
import { silentLog } from './log';
import { PATIENCE_MS } from './patience';

/** Metrics that keep nothing. */
export const noMetrics: Metrics = {
  counter: () => ({ inc: () => undefined }),
  gauge: () => ({ set: () => undefined }),
  histogram: () => ({ observe: () => undefined }),
};

export interface Engines {
  broker: Broker;
  records: RecordLog;
  events: EventStore;
  wakeups: Wakeups;
  shares: Shares;
  subject_keys: SubjectKeys;
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
  close(): Promise<void>;
}

/** The embedded engines on one database. */
export async function engines(db: PostgresDatabase): Promise<Engines> {
  const wakeups = createLocalWakeups();
  const broker = createPostgresBroker({ pool: db.pool, wakeups });
  const master_keys = parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`);
  const subject_keys = createSubjectKeys({ db, master_keys });
  const records = createRecordLog({ broker, subject_keys });
  const events = fedEventStore(await createPostgresEventStore({ pool: db.pool, wakeups, poll_ms: 200 }));
  await broker.ensureTopics(Object.values(TOPICS), 4);
  const session = new ProcessSession((db.pool as unknown as { options: pg.ClientConfig }).options, silentLog);
  const shares = createPostgresShares({ db, session, wakeups, log: silentLog, heartbeat_ms: 200 });
  return {
    broker,
    records,
    events,
    wakeups,
    shares,
    subject_keys,
    readStored: async (some) => some.map(UPCASTERS.read),
    async close() {
      await shares.close();
      await session.close();
      await broker.close();
      await events.close();
      await wakeups.close();
    },
  };
}

/** Jobs of projections that start automations, over accounts without any. */
export const NO_STARTS: NonNullable<ProjectionRuntimeDeps['jobs']> = {
  has: (name) => name === START_AUTOMATION,
  enqueueNamed: () => Promise.reject(new Error('no account has an automation')),
  wake: () => undefined,
};

/** A runtime with pauses fit for a test. */
export const runtimeOf = (
  db: ProjectionRuntimeDeps['db'],
  on: Engines,
  projections: ProjectionRuntimeDeps['projections'],
  options: Partial<ProjectionRuntimeDeps> = {},
) =>
  createProjectionRuntime({
    db,
    broker: on.broker,
    records: on.records,
    events: on.events,
    wakeups: on.wakeups,
    shares: on.shares,
    log: silentLog,
    metrics: noMetrics,
    projections,
    jobs: NO_STARTS,
    observe_ms: 100,
    backoff_ms: 300,
    wait_ms: PATIENCE_MS,
    ...options,
  });

/** Opens projections over sources that are still empty: from here on they announce everything. */
export async function opened(db: Queryable, on: Engines, projections: readonly Projection[]): Promise<void> {
  for (const p of projections) await initialiseCheckpoint({ ...on, db }, p);
}

/** A record that says nothing but its number; `raw` "poison:sql" or "poison:js" makes the test projections fail by
 * what it holds, "bug:sql" or "bug:js" by a mistake of theirs. */
export function record(account_id: string, raw: string | number): RecordEnvelope {
  const now = new Date().toISOString();
  return {
    id: uuid(),
    account_id,
    type: 'kick:follower',
    platform: 'kick',
    external_id: null,
    occurred_at: now,
    received_at: now,
    subject: null,
    raw: JSON.stringify(raw),
    trace: null,
  };
}

export const ACCOUNTS = Array.from({ length: 8 }, (_, n) => `00000000-0000-7000-8000-00000000000${n}`);

/** Creates the tables of {@link tally}: a partitioned one, so that a rebuild meets partitions too. */
export async function createTally(db: Queryable, name = 'tally'): Promise<void> {
  await db.query(`
    create table ${name} (
      owner text not null, n integer not null, digest text not null, id bigint generated always as identity,
      constraint ${name}_by_owner primary key (owner)
    ) partition by hash (owner);
    create table ${name}_0 partition of ${name} for values with (modulus 2, remainder 0);
    create table ${name}_1 partition of ${name} for values with (modulus 2, remainder 1);
    create index ${name}_most on ${name} (n desc, owner) where n > 3;
  `);
}

/** One step of the fold: count, and a hash over all ids in order, so that a lost, doubled or misplaced one shows. */
export const step = (digest: string, id: string) => createHash('md5').update(digest).update(id).digest('hex');

/** What the rows must be after these (owner, id) pairs in this order. */
export function fold(
  entries: readonly (readonly [owner: string, id: string])[],
): { owner: string; n: number; digest: string }[] {
  const rows = new Map<string, { owner: string; n: number; digest: string }>();
  for (const [owner, id] of entries) {
    const row = rows.get(owner) ?? { owner, n: 0, digest: '' };
    rows.set(owner, { owner, n: row.n + 1, digest: step(row.digest, id) });
  }
  return [...rows.values()].sort((a, b) => (a.owner < b.owner ? -1 : 1));
}

export const rowsOf = (db: Queryable, name = 'tally') =>
  db.query(`select owner, n, digest from ${name} order by owner collate "C"`);

async function add(
  tx: Queryable,
  name: string,
  entries: readonly (readonly [string, string, string])[],
): Promise<ChannelMessage[]> {
  const owners = [...new Set(entries.map(([owner]) => owner))];
  const stored = await tx.query(`select owner, n, digest from ${name} where owner = any($1)`, [owners]);
  const rows = new Map(
    stored.map((row) => [row.owner as string, { n: row.n as number, digest: row.digest as string }]),
  );
  for (const [owner, id, raw] of entries) {
    if (raw === '"poison:js"') throw new DataError(`cannot read ${id}`);
    if (raw === '"bug:js"') throw new TypeError(`no such member in ${id}`);
    const row = rows.get(owner) ?? { n: 0, digest: '' };
    rows.set(owner, { n: row.n + 1, digest: step(row.digest, id) });
  }
  await tx.query(
    `insert into ${name} (owner, n, digest) select * from unnest($1::text[], $2::integer[], $3::text[])
     on conflict (owner) do update set n = excluded.n, digest = excluded.digest`,
    [[...rows.keys()], [...rows.values()].map(({ n }) => n), [...rows.values()].map(({ digest }) => digest)],
  );
  // After the effects, as a constraint would: they must be undone with it.
  if (entries.some(([, , raw]) => raw === '"bug:sql"')) await tx.query('select no_such_column from tally');
  if (entries.some(([, , raw]) => raw === '"poison:sql"')) await tx.query(`select 'no number'::integer`);
  return entries.map(([owner, id]) => ({
    channel: `events:${owner}`,
    event_type: 'tally',
    data: JSON.stringify({ id }),
  }));
}

/** Counts records per account. Not idempotent on purpose: only the checkpoint keeps it exact. */
export const tally = (name = 'tally', version = 1): RecordProjection =>
  projection({
    name,
    version,
    from: topic(TOPICS.platform_events),
    tables: [name],
    apply: (batch, tx) =>
      add(
        tx,
        name,
        batch.map(({ account_id, id, raw }) => [account_id, id, raw]),
      ),
  });

/** The same over domain events, per stream; `data.raw` poisons. */
export const eventTally = (name = 'event_tally', version = 1): EventProjection =>
  projection({
    name,
    version,
    from: domainEvents(['thing:happened']),
    tables: [name],
    apply: (batch, tx) =>
      add(
        tx,
        name,
        batch.map(({ stream, id, data }) => [stream, id, JSON.stringify(data.raw ?? null)]),
      ),
  });

/** Waits until `check` answers something other than false or undefined; fails after `ms`. */
export async function until<T>(
  check: () => Promise<T | false | undefined> | T | false | undefined,
  ms = PATIENCE_MS,
): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    const found = await check();
    if (found !== false && found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited ${ms} ms in vain for: ${String(check)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Small numbers that come again with the same seed. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
