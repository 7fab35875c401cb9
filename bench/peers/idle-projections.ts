import { createPostgresBroker } from '../../engines/broker/postgres/broker';
import { fedEventStore } from '../../engines/event-store/feed/feed';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createPostgresShares } from '../../engines/leases/shares';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { domainEvents, projection } from '../../kernel/projection';
import { createProjectionRuntime } from '../../projections/runtime/runtime';
import { quiet } from '../harness';

/** A projector process with COUNT idle projections: `idle-projections.js URL COUNT`. */
async function main([url = '', count = '1']: string[]): Promise<void> {
  const db = new PostgresDatabase({ url, name: 'projector', size: 8, pipeline: true });
  const log_db = new PostgresDatabase({ url, name: 'log', size: 6 });
  const wakeups = createPostgresWakeups({ url });
  const session = new ProcessSession({ connectionString: url }, quiet);
  const events = fedEventStore(await createPostgresEventStore({ pool: log_db.pool, wakeups }));
  const shares = createPostgresShares({ db: log_db, session, wakeups, log: quiet });
  const runtime = createProjectionRuntime({
    db,
    broker: createPostgresBroker({ pool: log_db.pool, wakeups, session }),
    records: { decode: async () => ({ records: [], undecodable: [] }) },
    events,
    wakeups,
    shares,
    log: quiet,
    metrics: createPrometheusMetrics({}),
    projections: Array.from({ length: Number(count) }, (_, n) =>
      projection({
        name: `idle-${n}`,
        version: 1,
        from: domainEvents([`idle:never_${n}`]),
        tables: [],
        apply: async () => [],
      }),
    ),
  });
  await runtime.start();
  const driven = () => runtime.lag().every(({ state }) => state === 'running');
  while (!driven()) await new Promise((resume) => setTimeout(resume, 20));
  process.stdout.write('idle projections ready at http://127.0.0.1:0\n');
}

main(process.argv.slice(2)).catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
