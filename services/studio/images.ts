import { createHash } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import type { ImageType } from '../../domain/studio/uploads';
import type { Blobs } from '../../engines/blobs/port';
import { ApiError } from '../../kernel/errors';
import { Slots, TooManyWait } from '../../lib/async/slots';

/** Pixels of an image, over all of its frames. */
export const MAX_PIXELS = 100_000_000;
const ENCODE_SECONDS = 30;

/** Why an image is not kept. */
export type ImageProblem = 'damaged' | 'too_many_pixels';
export class BadImage extends Error {
  constructor(readonly problem: ImageProblem) {
    super(`the image is not kept: ${problem}`);
  }
}

/** Images are read and encoded in turn: the largest takes 500 MB. */
const MAX_WAITING = 20;
const slots = new Slots(1, MAX_WAITING);
const RETRY_AFTER_SECONDS = 10;

/** Too many images wait: 503 with `Retry-After`. */
export class TooManyImages extends ApiError {
  constructor() {
    const options = { status: 503, retry_after_seconds: RETRY_AFTER_SECONDS };
    super('INTERNAL_SERVER_ERROR', `${MAX_WAITING} images wait to be encoded`, options);
  }
}

/**
 * Replaces a stored image by one that is encoded again: upright, with its animation, without metadata.
 * @throws BadImage for an image that cannot be read, or is too large; TooManyImages where no more may wait
 */
export async function encodeAgain(
  blobs: Pick<Blobs, 'get' | 'put'>,
  key: string,
  content_type: ImageType,
): Promise<{ size_bytes: number; sha256: string }> {
  try {
    return await slots.use(async () => {
      const received = await blobs.get(key);
      if (received === undefined) throw new Error(`the blob ${key} is not there`);
      const encoded = await encode(await buffer(received), content_type);
      await blobs.put(key, encoded, content_type);
      return { size_bytes: encoded.length, sha256: createHash('sha256').update(encoded).digest('hex') };
    });
  } catch (error) {
    throw error instanceof TooManyWait ? new TooManyImages() : error;
  }
}

async function encode(bytes: Buffer, content_type: ImageType): Promise<Buffer> {
  const { default: sharp } = await import('sharp');
  const animated = content_type === 'image/gif' || content_type === 'image/webp';
  const open = () => sharp(bytes, { animated, limitInputPixels: MAX_PIXELS, failOn: 'error' });
  const read = async <Read>(reading: Promise<Read>): Promise<Read> => {
    try {
      return await reading;
    } catch (error) {
      throw new BadImage(/pixel limit/i.test((error as Error).message) ? 'too_many_pixels' : 'damaged');
    }
  };
  const { width = 0, height = 0, pages = 1, pageHeight } = await read(open().metadata());
  // Of an animation `height` is that of all frames below each other.
  const pixels = width * (pageHeight === undefined ? height * (animated ? pages : 1) : pageHeight * pages);
  if (pixels > MAX_PIXELS) throw new BadImage('too_many_pixels');
  const image = open().autoOrient().timeout({ seconds: ENCODE_SECONDS });
  switch (content_type) {
    case 'image/png':
      return read(image.png().toBuffer());
    case 'image/jpeg':
      return read(image.jpeg({ quality: 90 }).toBuffer());
    case 'image/gif':
      return read(image.gif().toBuffer());
    case 'image/webp':
      return read(image.webp({ quality: 90 }).toBuffer());
    case 'image/avif':
      return read(image.avif({ quality: 70, effort: 2 }).toBuffer());
  }
}
