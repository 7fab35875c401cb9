import type { Blobs } from '../../engines/blobs/port';
import type { ByteRange } from '../../kernel/operations/transfers';

/** A part of a blob. */
export async function* partOf(
  blobs: Pick<Blobs, 'get'>,
  key: string,
  { start, end }: ByteRange,
): AsyncGenerator<Uint8Array> {
  const whole = await blobs.get(key);
  if (whole === undefined) throw new Error(`the blob ${key} is not there`);
  let at = 0;
  for await (const chunk of whole as AsyncIterable<Buffer>) {
    const part = chunk.subarray(Math.max(0, start - at), Math.max(0, end + 1 - at));
    if (part.length > 0) yield part;
    at += chunk.length;
    if (at > end) return;
  }
}
