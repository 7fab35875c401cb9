import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { BlobInfo, Blobs } from '../blobs/port';
import { openFile } from './files';
import { blobCopyKey, type Manifest } from './manifest';

export interface RestoreBlobsOptions {
  from: Blobs;
  prefix: string;
  manifest: Manifest;
  to: Blobs;
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

/**
 * Holds the blob store against the backup's list: what is there with the same hash stays, what is not is copied back
 * where the backup has a copy. A blob that was written anew since the backup stays as it is. Returns the keys that are
 * nowhere.
 */
export async function restoreBlobs(options: RestoreBlobsOptions): Promise<{ copied: number; missing: string[] }> {
  const { from, prefix, manifest, to } = options;
  const gunzip = createGunzip();
  const read = pipeline(await openFile(from, manifest.blobs), gunzip);
  read.catch(() => undefined); // the lines of a stream that failed just end; asked below
  let copied = 0;
  let done = 0;
  const missing: string[] = [];
  for await (const line of createInterface({ input: gunzip, crlfDelay: Infinity })) {
    const info = JSON.parse(line) as BlobInfo;
    done += 1;
    options.onProgress?.({ done, total: manifest.blobs.count, what: info.key });
    if (await to.head(info.key)) continue;
    const key = blobCopyKey(prefix, info.key);
    if (!manifest.blobs.copied || !(await from.head(key))) {
      missing.push(info.key);
      continue;
    }
    await to.put(info.key, await openFile(from, { key, sha256: info.sha256 }), info.content_type);
    copied += 1;
  }
  if (done !== manifest.blobs.count)
    throw new Error(`${manifest.blobs.key} is damaged: ${done} of ${manifest.blobs.count} entries`);
  await read;
  return { copied, missing };
}
