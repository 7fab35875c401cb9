import { Readable } from 'node:stream';
import type { Blobs } from '../../engines/blobs/port';
import type { ByteRange } from '../../kernel/operations/transfers';

/** Time that reading a file's headers may take. */
const PARSE_MS = 5_000;

/** Length of the audio in milliseconds; null where its headers do not have it, or cannot be read in time. */
export async function durationOf(blobs: Pick<Blobs, 'get'>, key: string, content_type: string): Promise<number | null> {
  const audio = await blobs.get(key);
  if (audio === undefined) return null;
  const timer = setTimeout(() => audio.destroy(new Error('reading the headers took too long')), PARSE_MS);
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- an ES module, loaded when it is first needed
  const { parseWebStream } = require('music-metadata') as typeof import('music-metadata');
  try {
    const web = Readable.toWeb(audio) as ReadableStream<Uint8Array>;
    const { format } = await parseWebStream(web, { mimeType: content_type }, { skipCovers: true, duration: true });
    return format.duration === undefined ? null : Math.round(format.duration * 1000);
  } catch {
    // The file has a known beginning and odd headers: it may play, and its length is not known.
    return null;
  } finally {
    clearTimeout(timer);
    audio.destroy();
  }
}

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
