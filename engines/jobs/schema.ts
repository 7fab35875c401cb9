import pg from 'pg';
import { BOUNDED } from '../postgres/session-settings';
import { OWNER } from './flags';
import { JOB_SCHEMA } from './names';

/** Newest step of the library's schema that this release was tested with. */
export const JOB_SCHEMA_STEP = 19;

/** Our index on the library's table. */
const OWNER_INDEX = `create index if not exists lumio_jobs_owner
  on ${JOB_SCHEMA}._private_jobs ((flags->>'${OWNER}')) where flags ? '${OWNER}'`;

/**
 * Brings the job library's schema to its newest step. The caller holds the lock of migrations. Needs only the right to
 * create a schema in the database. Leaves the schema of a newer library unchanged.
 * @throws Error when a newer library excludes this one
 */
export async function installJobSchema(url: string): Promise<void> {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'lumio migrate',
    max: 1,
    keepAlive: true,
    options: `-c timezone=UTC ${BOUNDED}`,
  });
  // Without listeners a broken connection would end the process; the statement that uses the connection fails anyway.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => client.on('error', () => undefined));
  try {
    const { rows } = await pool.query(`select to_regclass('${JOB_SCHEMA}.migrations') is not null as made`);
    if (rows[0].made) {
      const steps = await pool.query(`select max(id) as newest from ${JOB_SCHEMA}.migrations`);
      // Loading the library costs more than this check.
      if (steps.rows[0].newest === JOB_SCHEMA_STEP) {
        await pool.query(OWNER_INDEX);
        return;
      }
    }
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded by the one start that needs it
    const { Logger, runMigrations } = require('graphile-worker') as typeof import('graphile-worker');
    const silent = new Logger(() => () => undefined);
    await runMigrations({ pgPool: pool, schema: JOB_SCHEMA, logger: silent });
    await pool.query(OWNER_INDEX);
  } finally {
    await pool.end();
  }
}
