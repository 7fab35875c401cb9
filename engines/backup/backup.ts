import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Blobs } from '../blobs/port';
import { Meter } from '../blobs/keys';
import { ident } from '../../kernel/sql';
import { asQueryable } from '../postgres/pool';
import { LOCKS } from '../locks/port';
import type { SecretBox } from '../secrets/port';
import { backUpLogs, eventPlaces, type OutsideLogs } from './logs';
import { relation, readSequences, readTables, type TableShape } from './catalog';
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
  /** Where the backup goes, under `prefix` ('' or ending in `/`). */
  target: Blobs;
  prefix: string;
  /** The installation's own blobs: listed, and copied when `copy_blobs`. What lies under `prefixes_left_out` is not. */
  blobs: Blobs;
  copy_blobs: boolean;
  prefixes_left_out?: readonly string[];
  /** Tables without their rows: derived ones, subject keys, what is of no use in another cluster. */
  leave_out: readonly string[];
  engines: { events: string; broker: string };
  /** Logs that are no tables. */
  logs?: OutsideLogs;
  secrets: SecretBox;
  version: string;
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

/**
 * Copies every table except `leave_out` in one snapshot while traffic goes on: logs, checkpoints, ledger and state of
 * one moment, so that a restored installation goes on without gap or double. The manifest comes last; without it there
 * is no backup.
 * @throws Error when a backup lies there already, or the schema is being migrated
 */
export async function createBackup(options: BackupOptions): Promise<Manifest> {
  const { target, prefix } = options;
  if (await target.head(manifestKey(prefix))) throw new Error('a backup lies there already: give another folder');
  const client = await options.pool.connect();
  let broken: Error | undefined;
  const onError = (error: Error) => (broken = error);
  client.on('error', onError);
  try {
    const db = asQueryable(client);
    await client.query('begin isolation level repeatable read read only');
    await client.query(`set local application_name = 'lumio backup'`);
    const { rows } = await client.query('select pg_try_advisory_xact_lock_shared($1) as mine', [LOCKS.backup]);
    if (!rows[0].mine) throw new Error('the schema is being migrated: take the backup when that has ended');
    await client.query('set local idle_in_transaction_session_timeout = 0; set local statement_timeout = 0');
    // Settings of a role or a database must not change how times are written.
    await client.query(
      `set local datestyle = 'ISO, YMD'; set local intervalstyle = 'postgres'; set local timezone = 'UTC'`,
    );
    const [facts] = await db.query(`select now() as taken_at, current_setting('server_version') as server_version,
      (select value from installation where name = 'id') as installation_id`);
    const steps = await db.query<{ name: string }>('select name from schema_migrations order by id');
    const all = await readTables(db);
    const tables = all.filter(({ name }) => !options.leave_out.includes(name));
    const total = tables.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
    let done = 0;
    const copied: BackedUpTable[] = [];
    for (const table of tables) {
      const report = (bytes: number) =>
        options.onProgress?.({ done: done + Math.min(bytes, table.size_bytes), total, what: table.name });
      copied.push(await copyTable(client, table, target, prefix, report));
      done += table.size_bytes;
      options.onProgress?.({ done, total, what: table.name });
    }
    const places = options.logs ? await eventPlaces(db, options.logs) : [];
    const sequences = await readSequences(db);
    await client.query('commit');
    const report = (what: string) => options.onProgress?.({ done: total, total, what });
    const logs = options.logs ? await backUpLogs(target, prefix, options.logs, places, report) : null;
    // Blobs are written before the rows that name them: a list made after the snapshot holds all that its rows need.
    const blobs = await backUpBlobs(options);
    const manifest: Manifest = {
      format: 1,
      lumio_version: options.version,
      taken_at: facts!.taken_at as string,
      installation_id: facts!.installation_id as string,
      server_version: facts!.server_version as string,
      steps: steps.map(({ name }) => name),
      engines: options.engines,
      probe: options.secrets.seal(PROBE_TEXT, PROBE_CONTEXT),
      tables: copied,
      sequences,
      logs,
      left_out: all.map(({ name }) => name).filter((name) => options.leave_out.includes(name)),
      blobs,
    };
    const text = signedManifest(manifest, options.secrets);
    await target.put(manifestKey(prefix), Buffer.from(text), 'application/json');
    return manifest;
  } catch (error) {
    await client.query('rollback').catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

async function copyTable(
  client: pg.PoolClient,
  { name, columns, partitions }: TableShape,
  target: Blobs,
  prefix: string,
  report: (bytes: number) => void,
): Promise<BackedUpTable> {
  const rows = client.query(copyTo(`copy (select ${columns.map(ident).join(', ')} from ${relation(name)}) to stdout`));
  const meter = new Meter(report);
  const { file } = await put(target, tableKey(prefix, name), rows, meter);
  return {
    name,
    columns,
    partitions,
    rows: rows.rowCount,
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
        await target.put(blobCopyKey(prefix, info.key), content, info.content_type);
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

/** Through the meter and gzip into the target; a failure on either side ends the other. */
async function put(target: Blobs, key: string, source: Readable, meter: Meter) {
  const compressed = new PassThrough();
  const [{ size_bytes, sha256 }] = await Promise.all([
    target.put(key, compressed, 'application/gzip'),
    pipeline(source, meter, createGzip({ level: 4 }), compressed),
  ]);
  return { file: { key, size_bytes, sha256 } };
}
