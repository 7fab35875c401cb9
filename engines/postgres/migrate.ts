import type { Knex } from 'knex';
import pg from 'pg';
import { MIGRATIONS, type Migration } from '../../migrations';
import { FUNCTIONS, type SqlFunction } from '../../migrations/functions';
import { pause } from '../../lib/async/signal';
import { installJobSchema } from '../jobs/schema';
import { LOCKS } from '../locks/port';
import { DatabaseRefused, isLockTimeout } from './errors';
import { BOUNDED, KEEPALIVE } from './session-settings';

/** Name of the fact of `installation` that holds the lowest generation able to run on the schema; absent: 1. */
const GENERATION = 'schema_generation';

/** Table of the steps that were applied. */
const STEPS = 'schema_migrations';
/** Longest wait of a step for a lock, because every other session waits behind the step. */
const LOCK_WAIT = '2s';
const PAUSE_MS = 1_000;
/** About five minutes. */
const LOCK_TRIES = 100;

/** The step after which the job library's own schema belongs to ours. */
const JOBS_STEP = '0050-jobs';

export interface MigrateOptions {
  /** Applies only these steps: the schema of a backup. */
  only?: readonly string[];
  /** All steps of the release. Default: {@link MIGRATIONS}. */
  steps?: readonly Migration[];
  /** All functions of the release. Default: {@link FUNCTIONS}. */
  functions?: readonly SqlFunction[];
}

/**
 * Brings the database to the newest schema: applies the missing steps, then the changed functions. Many processes may
 * call it at once: one works, the others wait (knex's own lock makes concurrent first starts fail). Each step is a
 * transaction of its own, so that the next run continues after a killed one. Steps of a newer release stay unchanged.
 * Returns the names of the steps applied now.
 * @throws DatabaseRefused when there is no connection; Error in one line when a step of a newer release excludes this
 * release, a backup runs, or others hold a step's tables for minutes
 */
export async function migrate(url: string, options: MigrateOptions = {}): Promise<string[]> {
  const steps = options.steps ?? MIGRATIONS;
  const guard = await connectOnce(url, 'lumio migrate');
  try {
    await guard.query('select pg_advisory_lock($1)', [LOCKS.migrations]);
    await refuseNewer(guard, steps);
    const wanted = steps.filter(({ name }) => !options.only || options.only.includes(name));
    const pending = await pendingOf(guard, wanted);
    if (pending.length > 0) {
      await refuseBackup(guard);
      await applyAll(url, pending);
    }
    // The steps of a backup may not be all steps: the functions are created with the later ones.
    if (!options.only) await bringFunctions(guard, options.functions ?? FUNCTIONS);
    if (steps.some(({ name }) => name === JOBS_STEP && (options.only ?? [name]).includes(name))) {
      await installJobSchema(url);
    }
    return pending.map(({ name }) => name);
  } finally {
    await guard.end();
  }
}

/** Steps that the database does not have, in their order. */
async function pendingOf(db: pg.Client, steps: readonly Migration[]): Promise<Migration[]> {
  const { rows: tables } = await db.query(`select to_regclass('public.${STEPS}') is not null as made`);
  if (!tables[0].made) return [...steps];
  const { rows } = await db.query<{ name: string }>(`select name from public.${STEPS}`);
  const applied = new Set(rows.map(({ name }) => name));
  return steps.filter(({ name }) => !applied.has(name));
}

/**
 * Refuses to migrate during a backup, which reads every table in one transaction, for hours: a step would wait for the
 * backup, and all others for the step. Blocks new backups until the caller's session ends.
 */
async function refuseBackup(guard: pg.Client): Promise<void> {
  const { rows } = await guard.query('select pg_try_advisory_lock($1) as mine', [LOCKS.backup]);
  if (rows[0].mine) return;
  throw new Error('a backup of the database runs, and schema steps are pending: start again when it has ended');
}

async function applyAll(url: string, pending: readonly Migration[]): Promise<void> {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- a fifth of the start of a command without steps
  const { knex } = require('knex') as typeof import('knex');
  const db = knex({
    client: 'pg',
    connection: { ...session(url), options: BOUNDED },
    pool: { min: 0, max: 2 },
    // Warnings are dropped, because a failed step throws and a lock timeout is retried.
    log: { warn: () => undefined },
  });
  try {
    for (const step of pending) await applyPatiently(db, step);
  } finally {
    await db.destroy();
  }
}

/**
 * Applies and records a step in one transaction. Waits for a table at most {@link LOCK_WAIT} per try, because all other
 * sessions wait behind the step.
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

/** Replaces outdated functions. The version is the function's comment in the database, so that both change together. */
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

/** Opens a connection outside every pool. @throws DatabaseRefused */
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
  // NaN is refused, too: a value that is not a number is of an unknown later release.
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

/** Runs the step and, in the same transaction, raises the schema generation that older releases refuse to start on. */
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
