import type { HealthCheck } from './health';
import { TOPICS } from '../domain/records';
import type { Blobs } from '../engines/blobs/port';
import type { Broker } from '../engines/broker/port';
import type { Cache } from '../engines/cache/port';
import type { EventStore } from '../engines/event-store/port';
import type { Database } from '../engines/postgres/port';
import type { Reactors } from '../reactors/runtime/runtime';
import { WAITING_STATES } from '../projections/runtime/runner-states';
import type { ProjectionRuntime } from '../projections/runtime/runtime';

const since = (start: number): number => Math.round((performance.now() - start) * 100) / 100;

/** The relational database answers; the time is that of one empty statement. */
export const databaseCheck = (db: Database): HealthCheck => answers('database', () => db.query('select 1'));

/** The table of samples answers: TimescaleDB where the database has it, plain partitions elsewhere. */
export const timeseriesCheck = (db: Database): HealthCheck =>
  answers('timeseries', () => db.query('select from stream_samples limit 1'));

/**
 * Redis answers, where it is configured; without it the cache of this process, which always does. While Redis is away
 * everything goes on that does not need other nodes, so the whole is degraded and not unhealthy.
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

/** The leaders of the topic that webhooks are published to tell where its partitions end. */
export const brokerCheck = (broker: Pick<Broker, 'bounds'>): HealthCheck =>
  answers('broker', () => broker.bounds(TOPICS.platform_events));

/** The event store tells where its log ends. */
export const eventStoreCheck = (events: Pick<EventStore, 'head'>): HealthCheck =>
  answers('event_store', () => events.head());

/** The blob store says whether it has a blob; it has not, and need not. */
export const blobsCheck = (blobs: Pick<Blobs, 'head'>): HealthCheck => answers('blobs', () => blobs.head('health'));

/** Unhealthy while a reactor of this process cannot go on; why is in the log, and which in its metrics. */
export const reactorsCheck = (reactors: Pick<Reactors, 'status'>): HealthCheck => ({
  name: 'reactors',
  quiet: true,
  async check() {
    const failing = reactors.status().some(({ error }) => error !== null);
    return { status: failing ? 'unhealthy' : 'healthy', latency_ms: 0 };
  },
});

/**
 * Degraded while a projection of this process waits for a person, or for a newer build. The engines are not to blame.
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
