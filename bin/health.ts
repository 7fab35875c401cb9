import type { HealthCheck } from '../api/health';
import type { Database } from '../engines/postgres/port';

/** The relational database answers; the time is that of one empty statement. */
export function databaseCheck(db: Database): HealthCheck {
  return {
    name: 'database',
    async check() {
      const start = performance.now();
      await db.query('select 1');
      return { status: 'healthy', latency_ms: Math.round((performance.now() - start) * 100) / 100 };
    },
  };
}
