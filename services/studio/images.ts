import { Slots } from '../../lib/async/slots';
import type { ImageType } from '../../domain/studio/uploads';

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

/** Images are encoded in turn: the largest takes 400 MB. */
const slots = new Slots(1);

/**
 * The image, encoded again: upright, with its animation, without metadata.
 * @throws BadImage for an image that cannot be read, or is too large
 */
export const encodedAgain = (bytes: Buffer, content_type: ImageType): Promise<Buffer> =>
  slots.use(() => encode(bytes, content_type));

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
