import { pipeline, type Readable } from 'node:stream';
import { Verifier } from '../blobs/keys';
import type { Blobs } from '../blobs/port';
import type { BackedUpFile } from './manifest';

/**
 * A file of a backup, held against the manifest's checksum: its end is an error when it is another file, whatever the
 * store says of it.
 * @throws Error when it is missing
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
