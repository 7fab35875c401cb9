import type pg from 'pg';
import type { EventCatalogue } from '../kernel/event';
import type { Settings } from '../kernel/settings/settings';
import { ShutdownStack } from '../lib/async/shutdown-stack';
import type { Upcasters } from '../kernel/upcasters';
import { TOPICS } from '../domain/common/records';
import { SERVICE } from '../domain/common/vendors';
import { refuseUnfinishedRestore } from './backup/unfinished';
import type { Blobs } from './blobs/port';
import { observedBroker } from './broker/observed';
import type { Broker } from './broker/port';
import type { Cache } from './cache/port';
import { observedEventStore } from './event-store/decorators/observed';
import { attributedEventStore } from './event-store/decorators/attributed';
import { declaredEventStore } from './event-store/decorators/declared';
import { createSealing, sealedEventStore } from './event-store/decorators/sealing';
import { readVersioned, renewedEventStore, versionedEventStore } from './event-store/decorators/versioned';
import type { EventStore, StoredEvent } from './event-store/port';
import type { JobQueue } from './jobs/port';
import { createPostgresJobs } from './jobs/postgres';
import type { Leases, Shares } from './leases/port';
import { createPostgresLeases } from './leases/postgres';
import { createPostgresShares } from './leases/shares';
import type { Logger } from './log/port';
import type { PrometheusMetrics } from './metrics/prometheus';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './postgres/embedded/server';
import { connectOnce, migrate } from './postgres/migrate';
import { asQueryable, PostgresDatabase, type PoolOptions } from './postgres/pool';
import { ProcessSession } from './postgres/process-session';
import { keepTimeline, TimelineGuard } from './postgres/timeline';
import type { Presence } from './presence/port';
import type { RateLimits } from './rate-limits/port';
import { createRecordLog } from './records/log';
import type { RecordLog } from './records/port';
import type { SchemaIds } from './records/schema-ids';
import { tracedRecordLog } from './records/traced';
import type { Relay } from './relay/port';
import type { Slots } from './slots/port';
import { createSecretBox } from '../privacy/secrets/box';
import type { SecretBox } from '../privacy/secrets/port';
import { type MasterKeys, parseMasterKeys } from '../privacy/secrets/master-keys';
import type { SubjectKeys } from '../privacy/subject-keys/port';
import { createSubjectKeys } from '../privacy/subject-keys/postgres';
import type { Wakeups } from './wakeups/port';
import { createPostgresWakeups } from './wakeups/postgres';
import { NO_TRACING, type Tracing } from './tracing/port';
import { openEventStore } from './event-store/open';
import { openConfiguredBlobs } from './blobs/address';
import { openBroker } from './broker/open';
import { namingDatabase } from './postgres/url';
import { claimEnvironment, refuseOtherEnvironment } from './postgres/embedded/environment';
import { masterKeyText } from '../privacy/secrets/own-master-key';
import { openSchemaIds } from './records/open-schema-ids';
import { openShared } from './shared';

/** All engines of Lumio behind their ports, as configured. */
export interface Engines {
  /** Read models and commands; in a process that serves each statement is bounded (`database.statement_timeout`). */
  db: PostgresDatabase;
  /** Projections and upkeep, apart so that a burst of reads cannot starve them. */
  projector_db: PostgresDatabase;
  /** Builds of read models next to their live tables; no bound on a statement, because an index may take hours. */
  build_db: PostgresDatabase;
  /** Shows other processes that this process is alive. */
  session: ProcessSession;
  wakeups: Wakeups;
  events: EventStore;
  /** Events in their stored form: sealed and marked with their version. For copies and relays. */
  stored_events: EventStore;
  /** Decrypts and upcasts events in their stored form. */
  readStored(events: readonly StoredEvent[]): Promise<StoredEvent[]>;
  broker: Broker;
  records: RecordLog;
  /** Ids of schemas in values of topics. */
  schema_ids: SchemaIds;
  blobs: Blobs;
  subject_keys: SubjectKeys;
  secrets: SecretBox;
  relay: Relay;
  cache: Cache;
  rate_limits: RateLimits;
  presence: Presence;
  slots: Slots;
  leases: Leases;
  jobs: JobQueue;
  /** Divides pieces of work among the processes. */
  shares: Shares;
  tracing: Tracing;
  /** Facts of the database: its identity and realtime epoch. */
  installation: { id: string; epoch: string };
  /** Closes all parts in the reverse order of opening; throws the first failure at the end. */
  close(): Promise<void>;
}

/** The areas' declarations and the release, as far as the engines need them. */
export interface Declared {
  declared: EventCatalogue;
  upcasters: Upcasters;
  version: string;
}

export interface OpenOptions {
  settings: Settings;
  log: Logger;
  metrics: PrometheusMetrics;
  /** Connection string of an embedded PostgreSQL that another process runs; default: by the settings. */
  running_url?: string;
  /** Command that opens the engines, as the name of its database sessions. Default: by pool. */
  command?: string;
  /** Bounds the waits of a process that serves; a command may take as long as it needs. */
  serving?: boolean;
  /** Refuses a database with an unfinished restore, as a process that serves does. */
  restored?: boolean;
  /** Lets a process that serves take over a database of the other environment. Default false. */
  adopt?: boolean;
  /** Called when the embedded database ended unexpectedly, or the database came back on another timeline. */
  onLost(reason: string): void;
}

/**
 * Opens the engines and brings the schema to the newest step. Closes the opened parts when a later one fails.
 */
export async function openEngines(options: OpenOptions & Declared): Promise<Engines> {
  const stops = new ShutdownStack();
  try {
    return await open(options, stops);
  } catch (error) {
    await stops
      .all()
      .catch((failure: unknown) => options.log.error({ error: failure }, 'closing after a failed start failed'));
    throw error;
  }
}

type Bounds = Pick<PoolOptions, 'statement_timeout_ms' | 'query_timeout_ms'>;
/** Time beyond a statement's timeout in which the server's cancellation arrives before the connection is given up. */
const HEARD_MS = 1_000;
/** Connections of builds: one build at a time, which writes two partitions side by side and reads its goal. */
const BUILD_CONNECTIONS = 3;
/** Timeout of statements of projections and upkeep; after it the server counts as gone. */
const UPKEEP_MS = 300_000;

async function open(options: OpenOptions & Declared, stops: ShutdownStack): Promise<Engines> {
  const { settings, log, metrics, declared, upcasters } = options;
  const opened = <T extends { close(): Promise<void> }>(part: T): T => {
    stops.add(() => part.close());
    return part;
  };
  const tracing = opened(await openTracing(options));
  const url = options.running_url ?? settings.database.url ?? (await embedded(options, stops)).url;
  if (options.serving) await refuseOtherEnvironment(settings, url, options.adopt ?? false);
  if (options.serving || options.restored) await refuseUnfinished(url, `lumio ${options.command ?? 'start'}`);
  await namingDatabase(settings, () => migrate(url));
  const master_keys: MasterKeys = parseMasterKeys(masterKeyText(settings));

  const guard = options.serving ? new TimelineGuard(options.onLost) : undefined;
  const check = guard && ((client: pg.ClientBase) => guard.check(client));
  const pool = (name: string, size: number, bounds: Bounds, pipeline = false) => {
    const onError = (error: Error) => log.warn({ error, pool: name }, 'an idle database connection broke');
    const application = options.command && `lumio ${options.command}`;
    const bound = options.serving ? bounds : {};
    return opened(new PostgresDatabase({ url, name, application, size, pipeline, check, onError, ...bound }));
  };
  const { pool_size, statement_timeout: statement_timeout_ms } = settings.database;
  const query_timeout_ms = statement_timeout_ms + HEARD_MS;
  const db = pool('main', pool_size, { statement_timeout_ms, query_timeout_ms });
  const projector_db = pool('projector', 8, { query_timeout_ms: UPKEEP_MS }, true);
  // The only pool without a bound; the keepalive of its connections detects a lost server.
  const build_db = pool('build', BUILD_CONNECTIONS, {}, true);
  // Appends, publishes and their reads have bounds of their own.
  const log_db = pool('log', 6, { query_timeout_ms });
  const jobs_db = pool('jobs', 5, { query_timeout_ms: UPKEEP_MS });
  reportPools(metrics, [db, projector_db, build_db, log_db, jobs_db]);

  if (options.serving && !options.adopt) await claimEnvironment(db, settings.env);
  const facts = new Map((await db.query('select name, value from installation')).map((row) => [row.name, row.value]));
  const timeline = guard?.timeline;
  if (timeline !== undefined && timeline !== facts.get('timeline'))
    facts.set('epoch', await keepTimeline(db, timeline));
  const installation = { id: facts.get('id') as string, epoch: facts.get('epoch') as string };
  const session = opened(new ProcessSession({ connectionString: url }, log));
  const wakeups = opened(createPostgresWakeups({ url, log }));
  const subject_keys = createSubjectKeys({ db: log_db, master_keys, wakeups });
  const store = await openEventStore({ url: settings.event_store.url, pool: log_db.pool, wakeups, log });
  const sealing = createSealing(declared, subject_keys);
  const known = new Set(declared.keys());
  const clear_events = attributedEventStore(versionedEventStore(sealedEventStore(store, sealing), upcasters, known));
  const events = opened(observedEventStore(declaredEventStore(clear_events, declared), { metrics, tracing }));
  const serving = options.serving ?? false;
  const topics = await openBroker({
    settings,
    serving,
    pool: log_db.pool,
    session,
    wakeups,
    installation: installation.id,
    log,
    metrics,
  });
  const broker = opened(observedBroker(topics, metrics));
  await broker.ensureTopics(Object.values(TOPICS), settings.broker.partitions);
  const schema_ids = await openSchemaIds(settings, log, serving);
  const record_log = createRecordLog({ broker, subject_keys, schema_ids, trace_headers: tracing.on });
  const records = tracing.on ? tracedRecordLog(record_log, tracing) : record_log;
  const { relay, cache, rate_limits, presence, slots } = opened(
    await openShared({ settings, installation: installation.id, log, metrics }),
  );
  const blobs = opened(await openConfiguredBlobs(settings));
  const leases = opened(createPostgresLeases({ db: log_db, log }));
  const shares = opened(createPostgresShares({ db: log_db, session, wakeups, log }));
  return {
    db,
    projector_db,
    build_db,
    session,
    wakeups,
    events,
    stored_events: renewedEventStore(store, upcasters),
    readStored: async (some) => (await sealing.open(some)).map((event) => readVersioned(event, upcasters)),
    broker,
    records,
    schema_ids,
    blobs,
    subject_keys,
    secrets: createSecretBox(master_keys),
    relay,
    cache,
    rate_limits,
    presence,
    slots,
    leases,
    jobs: createPostgresJobs({ db: jobs_db, wakeups, process: session, log }),
    shares,
    tracing,
    installation,
    close: stops.all,
  };
}

/** Checks for an unfinished restore before the schema is changed. @throws Error in one line */
async function refuseUnfinished(url: string, session: string): Promise<void> {
  const client = await connectOnce(url, session);
  try {
    await refuseUnfinishedRestore(asQueryable(client));
  } finally {
    await client.end();
  }
}

/** Opens tracing; the exporter is loaded only when configured. */
async function openTracing({ settings, version }: OpenOptions & Declared): Promise<Tracing> {
  const { otlp_url, sample_ratio } = settings.tracing;
  if (otlp_url === undefined) return NO_TRACING;
  const { createOpenTelemetryTracing } = await import('./tracing/opentelemetry.js');
  return createOpenTelemetryTracing({ otlp_url, service: SERVICE, version, sample_ratio });
}

async function embedded(options: OpenOptions, stops: ShutdownStack): Promise<EmbeddedPostgres> {
  const { settings, log, onLost } = options;
  const postgres = await startEmbeddedPostgres({ data_dir: settings.data_dir, log, onExit: onLost });
  stops.add(() => postgres.stop());
  return postgres;
}

function reportPools(metrics: PrometheusMetrics, pools: readonly PostgresDatabase[]): void {
  const connections = metrics.gauge('lumio_db_pool_connections', 'Open database connections', ['pool']);
  const idle = metrics.gauge('lumio_db_pool_idle', 'Idle database connections', ['pool']);
  const waiting = metrics.gauge('lumio_db_pool_waiting', 'Callers that wait for a database connection', ['pool']);
  metrics.beforeRender(() => {
    for (const { name, stats } of pools.map((pool) => ({ name: pool.name, stats: pool.stats() }))) {
      connections.set(stats.connections, { pool: name });
      idle.set(stats.idle, { pool: name });
      waiting.set(stats.waiting, { pool: name });
    }
  });
}
