import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { BlobInfo, Blobs } from '../blobs/port';
import { blobCopyKey, type Manifest } from './manifest';

export interface RestoreBlobsOptions {
  from: Blobs;
  prefix: string;
  manifest: Manifest;
  to: Blobs;
  onProgress?: (progress: { done: number; total: number; what: string }) => void;
}

/**
 * Holds the blob store against the backup's list: what is there with the same hash stays, what is not is copied back where the backup
 * has a copy. A blob that was written anew since the backup stays as it is. Returns the keys that are nowhere.
 */
export async function restoreBlobs(options: RestoreBlobsOptions): Promise<{ copied: number; missing: string[] }> {
  const { from, prefix, manifest, to } = options;
  const list = await from.get(manifest.blobs.key);
  if (!list) throw new Error(`${manifest.blobs.key} is missing`);
  const gunzip = createGunzip();
  pipeline(list, gunzip, () => undefined); // a failure reaches the reader of the lines
  let copied = 0;
  let done = 0;
  const missing: string[] = [];
  for await (const line of createInterface({ input: gunzip, crlfDelay: Infinity })) {
    const info = JSON.parse(line) as BlobInfo;
    done += 1;
    options.onProgress?.({ done, total: manifest.blobs.count, what: info.key });
    if (await to.head(info.key)) continue;
    const copy = manifest.blobs.copied ? await from.get(blobCopyKey(prefix, info.key)) : undefined;
    if (!copy) {
      missing.push(info.key);
      continue;
    }
    await to.put(info.key, copy, info.content_type);
    copied += 1;
  }
  // The lines of a stream that failed just end.
  if (done !== manifest.blobs.count)
    throw new Error(`${manifest.blobs.key} is damaged: ${done} of ${manifest.blobs.count} entries`);
  return { copied, missing };
}
