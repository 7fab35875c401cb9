import type { Settings } from '../access/settings';
import { TOPICS } from '../domain/records';
import type { Broker } from '../engines/broker/port';
import { createPostgresBroker } from '../engines/broker/postgres';
import type { Cache } from '../engines/cache/port';
import { createLocalCache } from '../engines/cache/local';
import type { EventStore } from '../engines/event-store/port';
import { createPostgresEventStore } from '../engines/event-store/postgres';
import type { Logger } from '../engines/log/port';
import type { PrometheusMetrics } from '../engines/metrics/prometheus';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../engines/postgres/embedded';
import { migrate } from '../engines/postgres/migrate';
import { PostgresDatabase } from '../engines/postgres/pool';
import { createLocalRateLimits } from '../engines/rate-limits/local';
import type { RateLimits } from '../engines/rate-limits/port';
import { createRecordLog } from '../engines/records/log';
import type { RecordLog } from '../engines/records/port';
import { createLocalRelay } from '../engines/relay/local';
import type { Relay } from '../engines/relay/port';
import { createSecretBox } from '../engines/secrets/box';
import type { SecretBox } from '../engines/secrets/port';
import { type MasterKeys, parseMasterKeys } from '../engines/secrets/master-keys';
import type { SubjectKeys } from '../engines/subject-keys/port';
import { createSubjectKeys } from '../engines/subject-keys/postgres';
import type { Wakeups } from '../engines/wakeups/port';
import { createPostgresWakeups } from '../engines/wakeups/postgres';
import { masterKeyText } from './master-key';

/** Everything that Lumio runs on, behind its ports, as the settings choose it. */
export interface Engines {
  /** Read models and commands. */
  db: PostgresDatabase;
  /** Projections, apart so that a burst of reads cannot starve them. */
  projector_db: PostgresDatabase;
  wakeups: Wakeups;
  events: EventStore;
  broker: Broker;
  records: RecordLog;
  subject_keys: SubjectKeys;
  secrets: SecretBox;
  relay: Relay;
  cache: Cache;
  rate_limits: RateLimits;
  /** Facts of the database: its identity and realtime epoch. */
  installation: { id: string; epoch: string };
  /** In the reverse order of opening; every part is tried, the first failure is thrown at the end. */
  close(): Promise<void>;
}

export interface OpenOptions {
  settings: Settings;
  log: Logger;
  metrics: PrometheusMetrics;
  /** Connection string of a PostgreSQL of ours that another process runs; absent: the settings decide. */
  running_url?: string;
  /** The embedded database ended without being asked to. */
  onLost(reason: string): void;
}

/** Opens the engines and brings the schema to the newest step. What was opened is closed again when a later part fails. */
export async function openEngines(options: OpenOptions): Promise<Engines> {
  const closers: (() => Promise<void>)[] = [];
  try {
    return await open(options, closers);
  } catch (error) {
    await closeAll(closers).catch((failure: unknown) => options.log.error({ error: failure }, 'closing after a failed start failed'));
    throw error;
  }
}

async function open(options: OpenOptions, closers: (() => Promise<void>)[]): Promise<Engines> {
  const { settings, log, metrics } = options;
  const opened = <T extends { close(): Promise<void> }>(part: T): T => {
    closers.unshift(() => part.close());
    return part;
  };
  const url = options.running_url ?? settings.database.url ?? (await embedded(options, closers)).url;
  await migrate(url);
  const master_keys: MasterKeys = parseMasterKeys(masterKeyText(settings));

  const pool = (name: string, size: number) => {
    const onError = (error: Error) => log.warn({ error, pool: name }, 'an idle database connection broke');
    return opened(new PostgresDatabase({ url, name, size, onError }));
  };
  const db = pool('main', settings.database.pool_size);
  const projector_db = pool('projector', 8);
  const log_db = pool('log', 6);
  reportPools(metrics, [db, projector_db, log_db]);

  const facts = new Map((await db.query('select name, value from installation')).map((row) => [row.name, row.value]));
  const installation = { id: facts.get('id') as string, epoch: facts.get('epoch') as string };
  const wakeups = opened(createPostgresWakeups({ url, log }));
  const events = opened(await createPostgresEventStore({ pool: log_db.pool, wakeups, log }));
  const broker = opened(createPostgresBroker({ pool: log_db.pool, wakeups, id: `postgres:${installation.id}`, log }));
  await broker.ensureTopics(Object.values(TOPICS), settings.broker.partitions);
  const subject_keys = createSubjectKeys({ db: log_db, master_keys, wakeups });
  const records = createRecordLog({ broker, subject_keys });
  const relay = opened(createLocalRelay({ log }));
  const cache = opened(createLocalCache());
  const rate_limits = opened(createLocalRateLimits());
  return {
    db,
    projector_db,
    wakeups,
    events,
    broker,
    records,
    subject_keys,
    secrets: createSecretBox(master_keys),
    relay,
    cache,
    rate_limits,
    installation,
    close: () => closeAll(closers),
  };
}

async function embedded(options: OpenOptions, closers: (() => Promise<void>)[]): Promise<EmbeddedPostgres> {
  const { settings, log, onLost } = options;
  const postgres = await startEmbeddedPostgres({ data_dir: settings.data_dir, log, onExit: onLost });
  closers.unshift(() => postgres.stop());
  return postgres;
}

function reportPools(metrics: PrometheusMetrics, pools: readonly PostgresDatabase[]): void {
  const connections = metrics.gauge('lumio_db_pool_connections', 'Open database connections', ['pool']);
  const idle = metrics.gauge('lumio_db_pool_idle', 'Idle database connections', ['pool']);
  metrics.beforeRender(() => {
    for (const { name, stats } of pools.map((pool) => ({ name: pool.name, stats: pool.stats() }))) {
      connections.set(stats.connections, { pool: name });
      idle.set(stats.idle, { pool: name });
    }
  });
}

async function closeAll(closers: (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closers.splice(0)) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, 'closing the engines failed');
}
