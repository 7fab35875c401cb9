import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Meter } from '../blobs/keys';
import type { BlobInfo, Blobs } from '../blobs/port';
import { openFile } from './files';
import type { SecretBox } from '../../privacy/secrets/port';
import { blobCopyKey, type Manifest, readManifest } from './manifest';

export interface VerifyOptions {
  from: Blobs;
  prefix: string;
  /** Verifies the manifest's MAC; absent without the master keys. */
  secrets?: SecretBox;
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

/**
 * Reads the whole backup and compares every file, row count and checksum with the manifest. Returns the problems, one
 * line each; an empty list means that the backup can be restored.
 * @throws Error when there is no finished backup
 */
export async function verifyBackup({
  from,
  prefix,
  secrets,
  onProgress,
}: VerifyOptions): Promise<{ manifest: Manifest; problems: string[] }> {
  const { manifest, verify } = await readManifest(from, prefix);
  const problems: string[] = [];
  const logs = manifest.logs?.topics?.flatMap(({ partitions }) => partitions.map(({ file }) => file)) ?? [];
  if (manifest.logs?.events) logs.push(manifest.logs.events.file);
  const total = [...manifest.tables.map(({ file }) => file), ...logs, manifest.blobs].reduce(
    (sum, { size_bytes }) => sum + size_bytes,
    0,
  );
  let done = 0;
  const check = async (what: string, work: () => Promise<string | undefined>) => {
    try {
      const problem = await work();
      if (problem) problems.push(`${what}: ${problem}`);
    } catch (error) {
      problems.push(`${what}: ${(error as Error).message}`);
    }
  };
  if (secrets) {
    await check('signature', async () => (verify ? void verify(secrets) : 'there is none: an older Lumio made it'));
  }
  for (const table of manifest.tables) {
    await check(table.name, async () => {
      const { rows, meter } = await readFile(from, table.file.key);
      if (meter.sha256() !== table.content_sha256) return 'its rows are not those that were backed up';
      return rows === table.rows ? undefined : `it holds ${rows} rows instead of ${table.rows}`;
    });
    done += table.file.size_bytes;
    onProgress?.({ done, total, what: table.name });
  }
  for (const { key, sha256, size_bytes } of logs) {
    await check(key, async () => {
      for await (const _chunk of await openFile(from, { key, sha256 })); // to its end, where its checksum is compared
      return undefined;
    });
    done += size_bytes;
    onProgress?.({ done, total, what: key });
  }
  await check('blobs', async () => {
    let text = '';
    const { rows } = await readFile(from, manifest.blobs.key, (chunk) => (text += chunk.toString('latin1')));
    if (rows !== manifest.blobs.count) return `the list holds ${rows} blobs instead of ${manifest.blobs.count}`;
    if (!manifest.blobs.copied) return undefined;
    for (const line of Buffer.from(text, 'latin1').toString().split('\n').filter(Boolean)) {
      const info = JSON.parse(line) as BlobInfo;
      const copy = await from.head(blobCopyKey(prefix, info.key));
      if (copy?.sha256 !== info.sha256) return `the copy of ${info.key} is missing or another one`;
    }
    return undefined;
  });
  onProgress?.({ done: total, total, what: 'blobs' });
  return { manifest, problems };
}

async function readFile(from: Blobs, key: string, see: (chunk: Buffer) => void = () => undefined) {
  const content = await from.get(key);
  if (!content) throw new Error(`${key} is missing`);
  const meter = new Meter();
  let rows = 0;
  const count = new Writable({
    write(chunk: Buffer, _encoding, next) {
      // A line feed inside a value is escaped in both formats.
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) rows += 1;
      see(chunk);
      next();
    },
  });
  await pipeline(content, createGunzip(), meter, count);
  return { rows, meter };
}
