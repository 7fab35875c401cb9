import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../engines/postgres/embedded/server';
import { migrate } from '../../engines/postgres/migrate';
import { ORDINARY_ROLE, ordinaryUrl } from './database';
import { silentLog } from './log';

export interface TestCluster {
  postgres: EmbeddedPostgres;
  data_dir: string;
}

/** One real PostgreSQL for the run, with a migrated database that every test file copies. */
export default async function setup(): Promise<void> {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-test-'));
  // No test is about a power failure, so nothing needs to reach the disk.
  const postgres = await startEmbeddedPostgres({
    data_dir,
    log: silentLog,
    settings: ['fsync=off', 'full_page_writes=off', 'max_connections=400'],
  });
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(`create role ${ORDINARY_ROLE} login`);
  await admin.query(`create database lumio_test_template owner ${ORDINARY_ROLE}`);
  await admin.end();
  await migrate(ordinaryUrl(postgres.url, 'lumio_test_template'));
  process.env.LUMIO_TEST_POSTGRES = postgres.url;
  process.env.LUMIO_TEST_FOLDER = data_dir;
  (globalThis as { lumioTestCluster?: TestCluster }).lumioTestCluster = { postgres, data_dir };
}
