import { pipeline, type Readable } from 'node:stream';
import { Verifier } from '../blobs/keys';
import type { Blobs } from '../blobs/port';
import type { BackedUpFile } from './manifest';

/**
 * Opens a file of a backup and compares it with the manifest's checksum: the stream fails at its end when the file
 * differs, whatever the store reports.
 * @throws Error when the file is missing
 */
export async function openFile(
  from: Pick<Blobs, 'get'>,
  { key, sha256 }: Pick<BackedUpFile, 'key' | 'sha256'>,
): Promise<Readable> {
  const content = await from.get(key);
  if (!content) throw new Error(`${key} is missing`);
  const verifier = new Verifier(key, sha256);
  pipeline(content, verifier, () => undefined); // a failure reaches the reader
  return verifier;
}
