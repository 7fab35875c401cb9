import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { PostgresDatabase } from '../../engines/postgres/pool';

export interface TestDatabase {
  url: string;
  db: PostgresDatabase;
  /** Ends the pool and every other connection, and drops the database. */
  drop(): Promise<void>;
}

/** A fresh, migrated database of its own on the run's PostgreSQL. */
export async function testDatabase(size = 10): Promise<TestDatabase> {
  const name = `lumio_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(`create database ${name} template lumio_test_template`);
  const url = clusterUrl().replace('/lumio?', `/${name}?`);
  const db = new PostgresDatabase({ url, name: 'test', size });
  return {
    url,
    db,
    async drop() {
      await db.close();
      await asAdmin(`drop database ${name} with (force)`);
    },
  };
}

/** An empty database without our schema, for tests of the migrations. */
export async function emptyDatabase(): Promise<TestDatabase> {
  const name = `lumio_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(`create database ${name}`);
  const url = clusterUrl().replace('/lumio?', `/${name}?`);
  const db = new PostgresDatabase({ url, name: 'test' });
  return {
    url,
    db,
    async drop() {
      await db.close();
      await asAdmin(`drop database ${name} with (force)`);
    },
  };
}

function clusterUrl(): string {
  const url = process.env.LUMIO_TEST_POSTGRES;
  if (!url) throw new Error('the run has no PostgreSQL: start tests with npm test');
  return url;
}

async function asAdmin(sql: string): Promise<void> {
  const admin = new pg.Client({ connectionString: clusterUrl() });
  await admin.connect();
  try {
    await admin.query(sql);
  } finally {
    await admin.end();
  }
}
