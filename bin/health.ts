import type { HealthCheck } from '../api/health';
import type { Cache } from '../engines/cache/port';
import type { Database } from '../engines/postgres/port';

const since = (start: number): number => Math.round((performance.now() - start) * 100) / 100;

/** The relational database answers; the time is that of one empty statement. */
export function databaseCheck(db: Database): HealthCheck {
  return {
    name: 'database',
    async check() {
      const start = performance.now();
      await db.query('select 1');
      return { status: 'healthy', latency_ms: since(start) };
    },
  };
}

/** The table of samples answers: TimescaleDB where the database has it, plain partitions elsewhere. */
export function timeseriesCheck(db: Database): HealthCheck {
  return {
    name: 'timeseries',
    async check() {
      const start = performance.now();
      await db.query('select from stream_samples limit 1');
      return { status: 'healthy', latency_ms: since(start) };
    },
  };
}

/**
 * Redis answers, where it is configured; without it the cache of this process, which always does. While Redis is away everything goes on
 * that does not need other nodes, so the whole is degraded and not unhealthy.
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
