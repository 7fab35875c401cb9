import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { PostgresDatabase } from '../../engines/postgres/pool';

export interface TestDatabase {
  url: string;
  db: PostgresDatabase;
  /** Statements in this database with every right, as an administrator has them. */
  asAdmin(sql: string): Promise<void>;
  /** A connection of the administrator's to this database. */
  adminClient(): Promise<pg.Client>;
  /** Ends the pool and every other connection, and drops the database. */
  drop(): Promise<void>;
}

/** Who owns the run's databases: a role without any right beyond them, as an operator's is. */
export const ORDINARY_ROLE = 'lumio_ordinary';

/**
 * A fresh, migrated database of its own on the run's PostgreSQL. Files are copied, because the default strategy writes
 * each page to the write-ahead log.
 */
export const testDatabase = (size = 10): Promise<TestDatabase> =>
  createDatabase('template lumio_test_template strategy file_copy', size);

/** An empty database without our schema, for tests of the migrations. */
export const emptyDatabase = (): Promise<TestDatabase> => createDatabase('', 10);

async function createDatabase(options: string, size: number): Promise<TestDatabase> {
  const name = `lumio_test_${randomBytes(6).toString('hex')}`;
  await asAdmin(`create database ${name} owner ${ORDINARY_ROLE} ${options}`);
  const url = ordinaryUrl(clusterUrl(), name);
  const db = new PostgresDatabase({ url, name: 'test', size });
  return {
    url,
    db,
    asAdmin: (sql) => asAdmin(sql, name),
    adminClient: () => adminClient(name),
    async drop() {
      await db.close();
      await closed(name);
      await asAdmin(`drop database ${name} with (force)`);
    },
  };
}

/** How long connections may take to end that were told to: what is open then has been left open, and is cut off. */
const CLOSING_MS = 5_000;

/**
 * Waits until nobody is connected: a pool is ended before its connections are, and one that is cut off meanwhile fails
 * the file after its last test.
 */
async function closed(database: string): Promise<void> {
  const admin = await adminClient('lumio');
  try {
    for (const until = Date.now() + CLOSING_MS; Date.now() < until;) {
      const { rows } = await admin.query('select 1 from pg_stat_activity where datname = $1', [database]);
      if (rows.length === 0) return;
      await new Promise((resume) => setTimeout(resume, 20));
    }
  } finally {
    await admin.end();
  }
}

/** The administrator's connection string, turned into that of the ordinary role to this database. */
export const ordinaryUrl = (admin_url: string, database: string): string =>
  admin_url.replace(/\/\/lumio@([^/]*)\/lumio(?=\?|$)/, `//${ORDINARY_ROLE}@$1/${database}`);

function clusterUrl(): string {
  const url = process.env.LUMIO_TEST_POSTGRES;
  if (!url) throw new Error('the run has no PostgreSQL: start tests with npm test');
  return url;
}

async function asAdmin(sql: string, database = 'lumio'): Promise<void> {
  const admin = await adminClient(database);
  try {
    await admin.query(sql);
  } finally {
    await admin.end();
  }
}

async function adminClient(database: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: clusterUrl().replace('/lumio?', `/${database}?`) });
  await client.connect();
  return client;
}
