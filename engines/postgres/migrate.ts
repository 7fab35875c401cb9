import knex, { type Knex } from 'knex';
import pg from 'pg';
import { MIGRATIONS, type Migration } from '../../migrations';
import { FUNCTIONS, type SqlFunction } from '../../migrations/functions';
import { installJobSchema } from '../jobs/schema';
import { LOCKS } from '../locks/port';
import { DatabaseRefused } from './errors';
import { BOUNDED, KEEPALIVE } from './session-settings';

/** Name of the fact of `installation` that holds the lowest generation able to run on the schema; absent: 1. */
const GENERATION = 'schema_generation';

/** The step after which the job library's own schema belongs to ours. */
const JOBS_STEP = '0050-jobs';

export interface MigrateOptions {
  /** No other steps than these: the schema that a backup was made of. */
  only?: readonly string[];
  /** All steps that the build knows. Default: {@link MIGRATIONS}. */
  steps?: readonly Migration[];
  /** The functions that the build wants. Default: {@link FUNCTIONS}. */
  functions?: readonly SqlFunction[];
}

/**
 * Brings the database to the newest schema: the steps that it does not have, then the functions that changed. Many
 * processes may call it at once: one works, the others wait (knex's own lock makes concurrent first starts fail). Steps
 * of a newer build, which this one does not know, are left as they are. Returns the names of the steps applied now.
 * @throws DatabaseRefused when there is no connection; Error in one line when a newer build's step excludes this build
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<string[]> {
  const steps = options.steps ?? MIGRATIONS;
  const guard = await connectOnce(url, 'lumio migrate');
  try {
    await guard.query('select pg_advisory_lock($1)', [LOCKS.migrations]);
    await refuseNewer(guard, steps);
    const db = knex({ client: 'pg', connection: { ...session(url), options: BOUNDED }, pool: { min: 0, max: 2 } });
    try {
      const [, applied] = (await db.migrate.latest({
        migrationSource: sourceOf(steps.filter(({ name }) => !options.only || options.only.includes(name))),
        tableName: 'schema_migrations',
        // Knex would refuse a database that has steps which this build does not know.
        disableMigrationsListValidation: true,
      })) as [number, string[]];
      // The steps of a backup are not all: its functions come with the rest of them.
      if (!options.only) await bringFunctions(guard, options.functions ?? FUNCTIONS);
      if (steps.some(({ name }) => name === JOBS_STEP && (options.only ?? [name]).includes(name))) {
        await installJobSchema(url);
      }
      return applied;
    } finally {
      await db.destroy();
    }
  } finally {
    await guard.end();
  }
}

/** A function's version is its comment in the database, so that it tells of no other text than the one there. */
async function bringFunctions(db: pg.Client, functions: readonly SqlFunction[]): Promise<void> {
  const { rows } = await db.query<{ name: string; comment: string | null }>(
    `select proname::text as name, obj_description(oid, 'pg_proc') as comment from pg_proc
     where pronamespace = 'public'::regnamespace and proname = any ($1)`,
    [functions.map(({ name }) => name)],
  );
  const there = new Map(
    rows.map(({ name, comment }) => [name, Number(/^version (\d+)$/.exec(comment ?? '')?.[1] ?? 0)]),
  );
  const changed = functions.filter(({ name, version }) => (there.get(name) ?? 0) < version);
  if (changed.length === 0) return;
  const texts = changed.map(
    ({ name, version, text }) => `${text}\ncomment on function ${name} is 'version ${version}';`,
  );
  // Statements sent as one are one transaction.
  await db.query(texts.join('\n'));
}

const session = (url: string, application_name = 'lumio migrate') => ({
  connectionString: url,
  application_name,
  keepAlive: true,
});

/** One connection beside every pool. @throws DatabaseRefused */
export async function connectOnce(url: string, application_name: string): Promise<pg.Client> {
  try {
    const client = new pg.Client({ ...session(url, application_name), options: KEEPALIVE });
    await client.connect();
    return client;
  } catch (error) {
    throw new DatabaseRefused(error);
  }
}

async function refuseNewer(db: pg.Client, steps: readonly Migration[]): Promise<void> {
  const { rows: tables } = await db.query(`select to_regclass('public.installation') is not null as made`);
  if (!tables[0].made) return;
  const { rows } = await db.query('select value from installation where name = $1', [GENERATION]);
  const needed = Number(rows[0]?.value ?? 1);
  const known = Math.max(1, ...steps.map(({ generation = 1 }) => generation));
  // A value that is no number is of a build that this one knows nothing about.
  if (needed <= known) return;
  throw new Error(
    `the database needs a newer Lumio (its schema generation is ${rows[0].value}, this build knows ${known}): start the newer build, or restore a backup into a new database`,
  );
}

const sourceOf = (steps: readonly Migration[]): Knex.MigrationSource<Migration> => ({
  getMigrations: async () => [...steps],
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({ up: (db) => apply(migration, db), down: async () => undefined }),
});

/** The step, and in its transaction what it says about the builds before it. */
async function apply(migration: Migration, db: Knex): Promise<void> {
  await migration.up(db);
  const { generation } = migration;
  if (generation === undefined) return;
  await db.raw(
    'insert into installation (name, value) values (?, ?) on conflict (name) do update set value = excluded.value',
    [GENERATION, String(generation)],
  );
}
