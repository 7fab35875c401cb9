import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Logger } from '../log/port';
import type { PrometheusMetrics } from './prometheus';
import type { Database } from '../postgres/port';

export interface ProcessMetricsOptions {
  metrics: PrometheusMetrics;
  db: Database;
  log: Logger;
  /** Interval of the queries. Default 5 s. */
  every_ms?: number;
}

const RESOLUTION_MS = 10;

/**
 * Ages in seconds. A session idle in a transaction holds back vacuum, and may hold locks that projectors wait for. A
 * role without pg_read_all_stats sees neither state nor age of other roles' sessions; these are counted, so that a
 * small age is not mistaken for a complete one.
 */
const SESSIONS = `
  select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 as oldest,
         coalesce(max(extract(epoch from clock_timestamp() - state_change))
           filter (where state like 'idle in transaction%'), 0)::float8 as idle,
         count(*) filter (where query = '<insufficient privilege>')::int as hidden
  from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid()
    and (backend_type = 'client backend' and xact_start is not null or query = '<insufficient privilege>')`;
/** Tables of few rows that every commit updates; temporary schemas and rebuilds have others of these names. */
const HOT = `select relname as name, n_dead_tup as dead, n_live_tup as live from pg_stat_user_tables
  where schemaname = 'public'
    and relname in ('broker_partitions', 'channel_heads', 'checkpoints', 'event_log_counters', 'outbox_heads')`;
const PARKED = `select vendor, count(*)::int as parked from ingest_dead_letters where status = 'parked'
  group by vendor`;

/** Reports the release and the start time of this process. */
export function reportBuild(metrics: PrometheusMetrics, version: string): void {
  const started = Date.now();
  metrics.gauge('lumio_build_info', 'The running build', ['version']).set(1, { version });
  const uptime = metrics.gauge('lumio_uptime_seconds', 'Seconds since this process started');
  metrics.beforeRender(() => uptime.set((Date.now() - started) / 1000));
}

/**
 * Reports series that belong to no room: this process's event loop, and statistics of the database. Returns the
 * function that stops the reports.
 */
export function reportProcess({ metrics, db, log, every_ms = 5000 }: ProcessMetricsOptions): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const lag = metrics.gauge(
    'lumio_event_loop_lag_seconds',
    'Delay of the event loop since the last scrape, by quantile (p50, p99, max)',
    ['quantile'],
  );
  metrics.beforeRender(() => {
    // The histogram counts the timer's own interval as well.
    const seconds = (nanoseconds: number) => Math.max(0, (nanoseconds || 0) / 1e9 - RESOLUTION_MS / 1000);
    lag.set(seconds(delay.percentile(50)), { quantile: 'p50' });
    lag.set(seconds(delay.percentile(99)), { quantile: 'p99' });
    lag.set(seconds(delay.max), { quantile: 'max' });
    delay.reset();
  });

  const oldest = metrics.gauge(
    'lumio_db_oldest_transaction_seconds',
    'Age of the oldest open transaction of the database, of the sessions that our role may see',
  );
  const idle = metrics.gauge(
    'lumio_db_oldest_idle_in_transaction_seconds',
    'Longest time that a session has sat idle inside a transaction, of the sessions that our role may see',
  );
  const hidden = metrics.gauge(
    'lumio_db_hidden_sessions',
    'Sessions of other roles whose transactions our role may not see (grant pg_read_all_stats)',
  );
  const parked = metrics.gauge(
    'lumio_webhook_dead_letters',
    'Parked webhook deliveries that wait for a retry or a drop',
    ['vendor'],
  );
  const dead_rows = metrics.gauge(
    'lumio_db_dead_rows',
    'Dead versions of rows, by table, of the tables that every commit updates',
    ['table'],
  );
  const live_rows = metrics.gauge('lumio_db_live_rows', 'Rows of the same tables, as PostgreSQL estimates', ['table']);
  // A relay within this process loses no message; the series exists anyway, so that one alert fits every installation.
  metrics.counter('lumio_relay_lost_total', 'Relay messages that may not have reached other nodes').inc(0);

  const vendors = new Set<string>();
  const look = async () => {
    const [sessions] = await db.query<{ oldest: number; idle: number; hidden: number }>(SESSIONS);
    oldest.set(sessions!.oldest);
    idle.set(sessions!.idle);
    hidden.set(sessions!.hidden);
    for (const { name, dead, live } of await db.query<{ name: string; dead: number; live: number }>(HOT)) {
      dead_rows.set(dead, { table: name });
      live_rows.set(live, { table: name });
    }
    const rows = await db.query<{ vendor: string; parked: number }>(PARKED);
    for (const vendor of vendors) parked.set(0, { vendor });
    for (const row of rows) {
      vendors.add(row.vendor);
      parked.set(row.parked, { vendor: row.vendor });
    }
  };
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    look()
      .catch((error: unknown) => log.warn({ err: error }, 'the database could not be asked for its sessions'))
      .finally(() => (looking = false));
  }, every_ms);
  timer.unref();
  return () => {
    clearInterval(timer);
    delay.disable();
  };
}
