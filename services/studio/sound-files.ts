import type { Readable } from 'node:stream';
import type { Blobs } from '../../engines/blobs/port';
import type { ByteRange } from '../../kernel/operations/transfers';

/** A part of a blob; the whole is compared with its hash. @throws Error for a missing blob */
export async function partOf(
  blobs: Pick<Blobs, 'get' | 'part'>,
  { blob_key, size_bytes }: { blob_key: string; size_bytes: number },
  range: ByteRange,
): Promise<Readable> {
  const is_whole = range.start === 0 && range.end === size_bytes - 1;
  const part = is_whole ? await blobs.get(blob_key) : await blobs.part(blob_key, range);
  if (part === undefined) throw new Error(`the blob ${blob_key} is not there`);
  return part;
}
