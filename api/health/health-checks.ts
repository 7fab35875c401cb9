import type { HealthCheck } from './health';
import { TOPICS } from '../../domain/common/records';
import type { Blobs } from '../../engines/blobs/port';
import type { Broker } from '../../engines/broker/port';
import type { Cache } from '../../engines/cache/port';
import type { EventStore } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import type { Reactors } from '../../reactors/runtime/runtime';
import { WAITING_STATES } from '../../projections/runtime/status/runner-states';
import type { ProjectionRuntime } from '../../projections/runtime/runtime';
import type { Realtime } from '../../realtime/runtime/service';

const since = (start: number): number => Math.round((performance.now() - start) * 100) / 100;

/** Checks the relational database; the latency is that of an empty statement. */
export const databaseCheck = (db: Database): HealthCheck => answers('database', () => db.query('select 1'));

/** Checks the table of samples: TimescaleDB where the database has it, plain partitions elsewhere. */
export const timeseriesCheck = (db: Database): HealthCheck =>
  answers('timeseries', () => db.query('select from stream_samples limit 1'));

/**
 * Checks Redis where configured, else the cache of this process, which always answers. While Redis is unavailable all
 * functions that do not need other nodes continue, so that the whole is degraded and not unhealthy.
 */
export function cacheCheck(cache: Pick<Cache, 'ping'>): HealthCheck {
  return {
    name: 'cache',
    async check() {
      const start = performance.now();
      const answers = await cache.ping();
      return { status: answers ? 'healthy' : 'unhealthy', latency_ms: since(start) };
    },
  };
}

/** Checks the broker by the bounds of the topic of webhooks, which its leaders return. */
export const brokerCheck = (broker: Pick<Broker, 'bounds'>): HealthCheck =>
  answers('broker', () => broker.bounds(TOPICS.platform_events));

/** Checks the event store by the head of its log. */
export const eventStoreCheck = (events: Pick<EventStore, 'head'>): HealthCheck =>
  answers('event_store', () => events.head());

/** Checks the blob store by a lookup of a blob, which need not exist. */
export const blobsCheck = (blobs: Pick<Blobs, 'head'>): HealthCheck => answers('blobs', () => blobs.head('health'));

/** Unhealthy while a reactor of this process fails; the log has the reason, the metrics the name. */
export const reactorsCheck = (reactors: Pick<Reactors, 'status'>): HealthCheck => ({
  name: 'reactors',
  quiet: true,
  async check() {
    const failing = reactors.status().some(({ error }) => error !== null);
    return { status: failing ? 'unhealthy' : 'healthy', latency_ms: 0 };
  },
});

/**
 * Degraded while a projection of this process waits for an operator or for a newer release; the engines are healthy.
 */
export function projectionsCheck(runtime: Pick<ProjectionRuntime, 'lag'>): HealthCheck {
  return {
    name: 'projections',
    quiet: true,
    async check() {
      const waits = runtime.lag().some(({ state }) => WAITING_STATES.includes(state));
      return { status: waits ? 'degraded' : 'healthy', latency_ms: 0 };
    },
  };
}

/** Longest healthy time without a read of the outbox, which happens each second. */
const SILENT_MS = 5_000;

/** Unhealthy while this node cannot read the outbox: its sockets receive no stored message then. */
export const outboxCheck = (realtime: Pick<Realtime, 'silentFor'>, silent_ms = SILENT_MS): HealthCheck => ({
  name: 'outbox',
  quiet: true,
  async check() {
    return { status: realtime.silentFor() > silent_ms ? 'unhealthy' : 'healthy', latency_ms: 0 };
  },
});

function answers(name: string, ask: () => Promise<unknown>): HealthCheck {
  return {
    name,
    async check() {
      const start = performance.now();
      await ask();
      return { status: 'healthy', latency_ms: since(start) };
    },
  };
}
