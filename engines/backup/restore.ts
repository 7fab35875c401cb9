import { randomBytes } from 'node:crypto';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { ident } from '../../kernel/sql';
import { MIGRATIONS } from '../../migrations';
import { Meter } from '../blobs/keys';
import type { Blobs } from '../blobs/port';
import { DatabaseRefused } from '../postgres/errors';
import { JOB_SCHEMA } from '../jobs/names';
import { LOCKS } from '../locks/port';
import { migrate } from '../postgres/migrate';
import { asQueryable } from '../postgres/pool';
import { KEEPALIVE } from '../postgres/session-settings';
import type { Queryable } from '../postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';
import { relation, readSequences, readTables, type TableShape } from './catalog';
import type { LogRestores } from './log-restores';
import { type BackedUpTable, type Manifest, PROBE_CONTEXT, readManifest } from './manifest';
import { partitionBound, partitionKey } from './partition-bounds';
import { CONTINUE, markUnfinished, unfinishedOf, unfinishedRestore } from './unfinished';

export interface RestoreOptions {
  /** Connection string of a database that is empty, or has only the schema. */
  url: string;
  from: Blobs;
  prefix: string;
  secrets: SecretBox;
  /** Accepts a backup without a MAC, as older releases made them. */
  unsigned?: boolean;
  /**
   * Called after the checks and before the first write: decides about logs outside the database (default: none). The
   * restore fails with its error.
   */
  mayBegin?: (manifest: Manifest) => Promise<LogRestores>;
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

/**
 * Fills an empty database from a backup: the schema of the backup's step, all rows in one transaction (a failure leaves
 * the database empty), then the newer steps. The installation keeps its identity, so that checkpoints stay valid, but
 * gets a new realtime epoch, so that clients do not mistake new messages for old ones. Derived tables are empty
 * afterwards: the caller rebuilds them, and then removes the mark of an unfinished restore, which the same transaction
 * writes.
 * @throws Error in one line: no backup, unknown steps or master keys, a database in use or not empty, damaged files
 */
export async function restoreBackup(options: RestoreOptions): Promise<Manifest> {
  const manifest = await readVerified(options);
  const client = new pg.Client({
    connectionString: options.url,
    application_name: 'lumio restore',
    keepAlive: true,
    options: `-c timezone=UTC -c datestyle=ISO,YMD -c intervalstyle=postgres ${KEEPALIVE}`,
  });
  await client.connect().catch((error: unknown) => Promise.reject(new DatabaseRefused(error)));
  try {
    const db = asQueryable(client);
    // Serialises restores into one database, so that the second one finds it filled.
    await db.query('select pg_advisory_lock($1)', [LOCKS.restore]);
    await refuseUsed(db, manifest);
    const log_restores = (await options.mayBegin?.(manifest)) ?? { topics: 'tables', events: 'tables' };
    await migrate(options.url, { only: manifest.steps });
    await client.query('begin');
    await fill(client, options, manifest);
    await markUnfinished(db, unfinishedOf(manifest, log_restores));
    await client.query('commit');
    await client.query('analyze');
  } finally {
    await client.end();
  }
  await migrate(options.url);
  return manifest;
}

/**
 * Reads the manifest of a backup that this program and these master keys can restore.
 * @throws Error in one line: no backup, unknown steps or master keys, a manifest that was changed or is not signed
 */
export async function readVerified(
  options: Pick<RestoreOptions, 'from' | 'prefix' | 'secrets' | 'unsigned'>,
): Promise<Manifest> {
  const { manifest, verify } = await readManifest(options.from, options.prefix);
  const steps = new Set(MIGRATIONS.map(({ name }) => name));
  const unknown = manifest.steps.find((step) => !steps.has(step));
  if (unknown)
    throw new Error(
      `the backup is of a newer Lumio (${manifest.lumio_version}): this one does not know step ${unknown}`,
    );
  checkProbe(options.secrets, manifest);
  if (verify) verify(options.secrets);
  else if (!options.unsigned) {
    throw new Error(
      'the backup is not signed: it is of an older Lumio, or was changed; ' +
        '--unsigned restores it if you trust who could write there',
    );
  }
  return manifest;
}

function checkProbe(secrets: SecretBox, manifest: Manifest): void {
  try {
    secrets.open(manifest.probe, PROBE_CONTEXT);
  } catch (error) {
    throw new Error(`secrets.keys does not hold the master keys of the backup: ${(error as Error).message}`);
  }
}

async function refuseUsed(db: Queryable, { steps }: Manifest): Promise<void> {
  const [others] = await db.query(
    `select count(*)::int as n from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and application_name = any($1)`,
    [RUNNING],
  );
  if (others!.n > 0) throw new Error('a Lumio is running on this database: stop it first');
  if (await unfinishedRestore(db))
    throw new Error(`the database is not empty: a restore of it did not end; run ${CONTINUE}`);
  for (const table of ['domain_events', 'broker_records', 'ledger']) {
    const [there] = await db.query('select to_regclass($1) is not null as yes', [`public.${table}`]);
    if (!there!.yes) continue;
    const rows = await db.query(`select 1 from public.${ident(table)} limit 1`);
    if (rows.length > 0) throw new Error(`the database is not empty (${table} has rows): restore into a new one`);
  }
  const [migrated] = await db.query(`select to_regclass('public.schema_migrations') is not null as yes`);
  if (!migrated!.yes) return;
  const newer = await db.query('select name from public.schema_migrations where name <> all($1) limit 1', [steps]);
  if (newer.length > 0) {
    throw new Error(
      `the database has step ${newer[0]!.name as string} already, which the backup is older than: restore into a new one`,
    );
  }
}

async function fill(client: pg.Client, options: RestoreOptions, manifest: Manifest): Promise<void> {
  const db = asQueryable(client);
  const total = manifest.tables.reduce((sum, { content_bytes }) => sum + content_bytes, 0);
  let done = 0;
  const present = new Map((await readTables(db)).map((shape) => [shape.name, shape]));
  for (const name of KEPT) present.delete(name);
  const sequences = new Set((await readSequences(db)).map(({ name }) => name));
  // Only tables of the backup: rows that the schema's steps made in other tables (outbox_heads) stay.
  const names = manifest.tables.flatMap(({ name }) => (present.has(name) ? [relation(name)] : []));
  await db.query(`truncate ${names.join(', ')} cascade`);
  // For the ledger's trigger (migrations/functions/ledger_taken_later.sql).
  await db.query(`select set_config('lumio.restoring', 'on', true)`);
  for (const table of manifest.tables) {
    if (KEPT.includes(table.name)) continue;
    const shape = known(present.get(table.name), `table ${table.name}`);
    for (const column of table.columns) {
      known(shape.columns.includes(column) || undefined, `column ${column} of ${table.name}`);
    }
    await makePartitions(db, table, shape);
    await copyIn(client, options.from, table, (bytes) =>
      options.onProgress?.({ done: done + bytes, total, what: table.name }),
    );
    done += table.content_bytes;
    options.onProgress?.({ done, total, what: table.name });
  }
  for (const { name, last_value } of manifest.sequences) {
    // A sequence that the schema does not have belonged to a table that is not in the backup either.
    if (last_value !== null && sequences.has(name))
      await db.query('select setval(to_regclass($1), $2)', [relation(name), last_value]);
  }
  await db.query(`update installation set value = $1 where name = 'epoch'`, [randomBytes(4).toString('hex')]);
  await db.query(
    `insert into installation (name, value) values ('restored_at', now()::text), ('restored_from', $1)
     on conflict (name) do update set value = excluded.value`,
    [manifest.taken_at],
  );
}

const POOLS = ['main', 'projector', 'build', 'log', 'jobs'];
const COMMANDS = 'rebuild backup erase admin archive audit keys dead-letters parked-webhooks replay projections demo';
/** Names of the database sessions of servers, and of commands other than the restore. */
const RUNNING = [...POOLS, ...COMMANDS.split(' ')].map((name) => `lumio ${name}`);
/** Tables of the migrations themselves, whose rows are not restored. */
const KEPT = ['schema_migrations', 'schema_migrations_lock', `${JOB_SCHEMA}.migrations`];

/** Accepts a name of the backup only when our own catalogue has it. @throws Error with the missing name */
function known<T>(found: T | undefined, what: string): T {
  if (found === undefined) throw new Error(`the schema of the backup's steps has no ${what}`);
  return found;
}

/** Creates the partitions made since the schema's steps, one for each topic or month; named after their table. */
async function makePartitions(db: Queryable, { name: table, partitions, columns }: BackedUpTable, shape: TableShape) {
  const parents = new Set([table, ...shape.partitions.map(({ name }) => name)]);
  for (const { name, parent, bound, part_key } of partitions) {
    known(parents.has(parent) || undefined, `table ${parent} below ${table}`);
    if (!PARTITION.test(name) || !name.startsWith(`${table}_`)) throw new Error(`${name} is no partition of ${table}`);
    const by = part_key === null ? '' : ` partition by ${partitionKey(part_key, columns)}`;
    await db.query(
      `create table if not exists public.${ident(name)} partition of public.${ident(parent)} ${partitionBound(bound)}${by}`,
    );
    parents.add(name);
  }
}

const PARTITION = /^[a-z_][a-z0-9_]{0,62}$/;

async function copyIn(
  client: pg.Client,
  from: Blobs,
  table: BackedUpTable,
  report: (bytes: number) => void,
): Promise<void> {
  const content = await from.get(table.file.key);
  if (!content) throw new Error(`${table.file.key} is missing`);
  const meter = new Meter(report);
  const rows = client.query(
    copyFrom(`copy ${relation(table.name)} (${table.columns.map(ident).join(', ')}) from stdin`),
  );
  await pipeline(content, createGunzip(), meter, rows);
  if (meter.sha256() !== table.content_sha256)
    throw new Error(`${table.file.key}: its rows are not those that were backed up`);
  if (rows.rowCount !== table.rows)
    throw new Error(`${table.name}: ${rows.rowCount} rows came back instead of ${table.rows}`);
}
