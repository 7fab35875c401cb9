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
 * Completes the blob store by the backup's list: copies a missing blob back when the backup has a copy. Existing blobs
 * stay unchanged. Returns the keys without blob and copy as `missing`, and those whose content was written again since
 * the backup as `differing`.
 */
export async function restoreBlobs(
  options: RestoreBlobsOptions,
): Promise<{ copied: number; missing: string[]; differing: string[] }> {
  const { from, prefix, manifest, to } = options;
  const gunzip = createGunzip();
  const read = pipeline(await openFile(from, manifest.blobs), gunzip);
  read.catch(() => undefined); // the lines of a failed stream just end; awaited below
  let copied = 0;
  let done = 0;
  const missing: string[] = [];
  const differing: string[] = [];
  for await (const line of createInterface({ input: gunzip, crlfDelay: Infinity })) {
    const info = JSON.parse(line) as BlobInfo;
    done += 1;
    options.onProgress?.({ done, total: manifest.blobs.count, what: info.key });
    const existing = await to.head(info.key);
    if (existing) {
      // A store may have no checksum of a blob.
      if (existing.sha256 !== '' && info.sha256 !== '' && existing.sha256 !== info.sha256) differing.push(info.key);
      continue;
    }
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
  return { copied, missing, differing };
}
