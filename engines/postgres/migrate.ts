import knex, { type Knex } from 'knex';
import pg from 'pg';
import { MIGRATIONS, type Migration } from '../../migrations';
import { FUNCTIONS, type SqlFunction } from '../../migrations/functions';
import { pause } from '../../kernel/signal';
import { installJobSchema } from '../jobs/schema';
import { LOCKS } from '../locks/port';
import { DatabaseRefused, isLockTimeout } from './errors';
import { BOUNDED, KEEPALIVE } from './session-settings';

/** Name of the fact of `installation` that holds the lowest generation able to run on the schema; absent: 1. */
const GENERATION = 'schema_generation';

/** Table of the steps that were applied. */
const STEPS = 'schema_migrations';
/** Longest wait of a step for a lock, after which everybody behind it goes on. */
const LOCK_WAIT = '2s';
const PAUSE_MS = 1_000;
/** About five minutes. */
const LOCK_TRIES = 100;

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
 * processes may call it at once: one works, the others wait (knex's own lock makes concurrent first starts fail). Each
 * step is a transaction of its own, so that a run that is killed goes on with the next one. Steps of a newer build,
 * which this one does not know, are left as they are. Returns the names of the steps applied now.
 * @throws DatabaseRefused when there is no connection; Error in one line when a newer build's step excludes this build,
 * a backup runs, or others hold a step's tables for minutes
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<string[]> {
  const steps = options.steps ?? MIGRATIONS;
  const guard = await connectOnce(url, 'lumio migrate');
  try {
    await guard.query('select pg_advisory_lock($1)', [LOCKS.migrations]);
    await refuseNewer(guard, steps);
    const wanted = steps.filter(({ name }) => !options.only || options.only.includes(name));
    const pending = await pendingOf(guard, wanted);
    if (pending.length > 0) await refuseBackup(guard);
    const db = knex({
      client: 'pg',
      connection: { ...session(url), options: BOUNDED },
      pool: { min: 0, max: 2 },
      // A step that fails is thrown; one that waits for a lock is tried again.
      log: { warn: () => undefined },
    });
    try {
      for (const step of pending) await applyPatiently(db, step);
      // The steps of a backup are not all: its functions come with the rest of them.
      if (!options.only) await bringFunctions(guard, options.functions ?? FUNCTIONS);
      if (steps.some(({ name }) => name === JOBS_STEP && (options.only ?? [name]).includes(name))) {
        await installJobSchema(url);
      }
      return pending.map(({ name }) => name);
    } finally {
      await db.destroy();
    }
  } finally {
    await guard.end();
  }
}

/** Those that the database does not have, in their order. */
async function pendingOf(db: pg.Client, steps: readonly Migration[]): Promise<Migration[]> {
  const { rows: tables } = await db.query(`select to_regclass('public.${STEPS}') is not null as made`);
  if (!tables[0].made) return [...steps];
  const { rows } = await db.query<{ name: string }>(`select name from public.${STEPS}`);
  const applied = new Set(rows.map(({ name }) => name));
  return steps.filter(({ name }) => !applied.has(name));
}

/**
 * A backup reads every table in one transaction, for hours: a step would wait for it, and all others for the step.
 * Until the caller's session ends, a backup does not begin either.
 */
async function refuseBackup(guard: pg.Client): Promise<void> {
  const { rows } = await guard.query('select pg_try_advisory_lock($1) as mine', [LOCKS.backup]);
  if (rows[0].mine) return;
  throw new Error('a backup of the database runs, and schema steps are pending: start again when it has ended');
}

/**
 * Applies one step and notes it, in one transaction. It waits for a table no longer than {@link LOCK_WAIT}, since
 * everybody else waits behind it, and tries again.
 */
async function applyPatiently(db: Knex, step: Migration): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await db.migrate.up({
        migrationSource: sourceOf([step]),
        tableName: STEPS,
        // Knex would refuse a database that has steps which this build does not know.
        disableMigrationsListValidation: true,
      });
      return;
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      if (tries >= LOCK_TRIES) {
        const { message } = error as Error;
        throw new Error(`step ${step.name}: its tables are in use by others for too long (${message})`, {
          cause: error,
        });
      }
      await pause(PAUSE_MS);
    }
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
  await db.raw(`set local lock_timeout = '${LOCK_WAIT}'`);
  await migration.up(db);
  const { generation } = migration;
  if (generation === undefined) return;
  await db.raw(
    'insert into installation (name, value) values (?, ?) on conflict (name) do update set value = excluded.value',
    [GENERATION, String(generation)],
  );
}
