import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type pg from 'pg';
import type { Blobs } from '../blobs/port';
import { Meter } from '../blobs/keys';
import { asQueryable } from '../postgres/pool';
import { LOCKS } from '../locks/port';
import type { SecretBox } from '../../privacy/secrets/port';
import { backUpLogs, eventPlaces, type OutsideLogs } from './logs';
import { relation, readSequences, readTables, type TableShape } from './catalog';
import { type Bound, copyRanges, copyRows, GROWING, type Part, partsOf } from './growing';
import {
  type BackedUpTable,
  blobCopyKey,
  blobListKey,
  type Manifest,
  manifestKey,
  PROBE_CONTEXT,
  PROBE_TEXT,
  signedManifest,
  tableKey,
} from './manifest';

export interface BackupOptions {
  pool: pg.Pool;
  /** Destination of the backup, under `prefix` ('' or ending in `/`). */
  target: Blobs;
  prefix: string;
  /** The installation's own blobs: listed, and copied when `copy_blobs`, except those under `prefixes_left_out`. */
  blobs: Blobs;
  copy_blobs: boolean;
  prefixes_left_out?: readonly string[];
  /** Tables whose rows are omitted: derived ones, subject keys, tables without use in another cluster. */
  leave_out: readonly string[];
  engines: { events: string; broker: string };
  /** Logs outside the database. */
  logs?: OutsideLogs;
  secrets: SecretBox;
  version: string;
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

/**
 * Copies every table except `leave_out` as of one moment during traffic: logs, checkpoints, ledger and state, so that a
 * restored installation continues without gap or duplicate. The snapshot ends when all tables but the large ones are
 * copied; the large ones follow, up to the bounds in the snapshot. The manifest is written last: without it the backup
 * does not count.
 * @throws Error when the folder has a backup, the schema is being migrated, or records of the backup were trimmed
 */
export async function createBackup(options: BackupOptions): Promise<Manifest> {
  const { target, prefix } = options;
  if (await target.head(manifestKey(prefix))) throw new Error('a backup lies there already: give another folder');
  const client = await options.pool.connect();
  const onError = () => undefined; // the next statement fails with it
  client.on('error', onError);
  try {
    const found = await backUpTables(client, options);
    const { facts, places, total, ...listed } = found;
    const report = (what: string) => options.onProgress?.({ done: total, total, what });
    const logs = options.logs ? await backUpLogs(target, prefix, options.logs, places, report) : null;
    // Blobs are written before the rows that refer to them: a list after the snapshot has all blobs of its rows.
    const blobs = await backUpBlobs(options);
    const manifest: Manifest = {
      format: 1,
      lumio_version: options.version,
      ...facts,
      engines: options.engines,
      probe: options.secrets.seal(PROBE_TEXT, PROBE_CONTEXT),
      ...listed,
      logs,
      blobs,
    };
    const text = signedManifest(manifest, options.secrets);
    await target.put(manifestKey(prefix), Buffer.from(text), 'application/json');
    return manifest;
  } finally {
    // Closes the connection, with its settings, its lock and any statement that a failure left running.
    client.release(true);
  }
}

/** Settings of the session; its name shows upkeep and operators that a backup runs. */
const SESSION = `
  set application_name = 'lumio backup';
  set idle_in_transaction_session_timeout = 0;
  set statement_timeout = 0;
  -- Settings of a role or a database must not change how times are written.
  set datestyle = 'ISO, YMD';
  set intervalstyle = 'postgres';
  set timezone = 'UTC'`;

async function backUpTables(client: pg.PoolClient, options: BackupOptions) {
  const db = asQueryable(client);
  await client.query(SESSION);
  const { rows } = await client.query('select pg_try_advisory_lock_shared($1) as mine', [LOCKS.backup]);
  if (!rows[0].mine) throw new Error('the schema is being migrated: take the backup when that has ended');
  await client.query('begin isolation level repeatable read read only');
  const [facts] = await db.query<{ taken_at: string; server_version: string; installation_id: string }>(
    `select now() as taken_at, current_setting('server_version') as server_version,
       (select value from installation where name = 'id') as installation_id`,
  );
  const steps = await db.query<{ name: string }>('select name from schema_migrations order by id');
  const all = await readTables(db);
  const tables = all.filter(({ name }) => !options.leave_out.includes(name));
  const places = options.logs ? await eventPlaces(db, options.logs) : [];
  const growing: Growing[] = [];
  for (const [name, bound] of Object.entries(GROWING)) {
    const table = tables.find((one) => one.name === name);
    if (table) growing.push({ table, bound: await bound(db, table), parts: await partsOf(db, table) });
  }
  const total = tables.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  let done = 0;
  const copied = new Map<string, BackedUpTable>();
  const copy = async (table: TableShape, rows: AsyncIterable<Buffer>) => {
    const report = (bytes: number) =>
      options.onProgress?.({ done: done + Math.min(bytes, table.size_bytes), total, what: table.name });
    copied.set(table.name, await copyTable(options, table, rows, report));
    done += table.size_bytes;
    options.onProgress?.({ done, total, what: table.name });
  };
  for (const table of tables) {
    if (table.name in GROWING) continue;
    await copy(table, copyRows(client, table.columns, `from ${relation(table.name)} r`));
  }
  const sequences = await readSequences(db);
  let in_snapshot = true;
  const endSnapshot = async () => {
    if (in_snapshot) await client.query('commit');
    in_snapshot = false;
  };
  for (const one of growing) await copy(one.table, growingRows(client, one, endSnapshot));
  await endSnapshot();
  return {
    facts: { ...facts!, steps: steps.map(({ name }) => name) },
    places,
    total,
    // In the order of their foreign keys.
    tables: tables.map(({ name }) => copied.get(name)!),
    sequences,
    left_out: all.map(({ name }) => name).filter((name) => options.leave_out.includes(name)),
  };
}

interface Growing {
  table: TableShape;
  bound: Bound;
  parts: Part[];
}

/**
 * Reads the rows that only the snapshot finds, ends the snapshot, then reads the other rows in short statements.
 * @throws Error when the number of rows differs from the snapshot's
 */
async function* growingRows(
  client: pg.PoolClient,
  { table: { name, columns }, bound, parts }: Growing,
  endSnapshot: () => Promise<void>,
): AsyncGenerator<Buffer> {
  let rows = 0;
  for (const part of bound.movable) {
    rows += (yield* copyRows(client, columns, `from ${relation(part)} r`)).rows;
  }
  await endSnapshot();
  for (const part of parts) {
    if (!bound.movable.includes(part.name)) rows += yield* copyRanges(client, columns, part, bound);
  }
  if (bound.count !== null && rows !== bound.count)
    throw new Error(
      `${name} gave ${rows} rows instead of ${bound.count}: records were trimmed meanwhile; take the backup again`,
    );
}

async function copyTable(
  { target, prefix }: BackupOptions,
  { name, columns, partitions, size_bytes }: TableShape,
  chunks: AsyncIterable<Buffer>,
  report: (bytes: number) => void,
): Promise<BackedUpTable> {
  const meter = new Meter(report);
  let rows = 0;
  const counted = async function* () {
    for await (const chunk of chunks) {
      // A line feed inside a value is escaped.
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) rows += 1;
      yield chunk;
    }
  };
  // Text of COPY may be twice as long as the row on disk, and gzip makes it shorter.
  const about_bytes = 2 * size_bytes;
  const { file } = await put(target, tableKey(prefix, name), Readable.from(counted()), meter, about_bytes);
  return {
    name,
    columns,
    partitions,
    rows,
    content_bytes: meter.size_bytes,
    content_sha256: meter.sha256(),
    file,
  };
}

async function backUpBlobs(options: BackupOptions): Promise<Manifest['blobs']> {
  const { blobs, target, prefix, copy_blobs, prefixes_left_out = [] } = options;
  let count = 0;
  let total_bytes = 0;
  const list = async function* () {
    for await (const info of blobs.list('')) {
      if (prefixes_left_out.some((left) => info.key.startsWith(left))) continue;
      if (copy_blobs) {
        const content = await blobs.get(info.key);
        if (!content) continue; // deleted since it was listed
        await target.put(blobCopyKey(prefix, info.key), content, info.content_type, { sha256: info.sha256 });
        options.onProgress?.({ done: 1, total: 1, what: info.key });
      }
      count += 1;
      total_bytes += info.size_bytes;
      yield Buffer.from(`${JSON.stringify(info)}\n`);
    }
  };
  const { file } = await put(target, blobListKey(prefix), Readable.from(list()), new Meter());
  return { ...file, count, total_bytes, copied: copy_blobs };
}

/**
 * Writes through meter and gzip to the target; the manifest stores the hash. A failure on either side ends the other.
 */
async function put(target: Blobs, key: string, source: Readable, meter: Meter, about_bytes?: number) {
  const compressed = new PassThrough();
  const [{ size_bytes, sha256 }] = await Promise.all([
    target.put(key, compressed, 'application/gzip', { sha256: null, about_bytes }),
    pipeline(source, meter, createGzip({ level: 4 }), compressed),
  ]);
  return { file: { key, size_bytes, sha256 } };
}
