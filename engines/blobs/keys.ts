import { createHash, type Hash } from 'node:crypto';
import { Transform, type TransformCallback } from 'node:stream';
import { BlobDamaged, InvalidBlobKey } from './port';

export const DEFAULT_CONTENT_TYPE = 'application/octet-stream';
const LONGEST_KEY = 900;
const LONGEST_SEGMENT = 200;
// Control characters and backslashes are unsafe in paths and URLs; `~` marks our own files.
const FORBIDDEN = /[\p{Cc}\p{Cs}\\~]/u;

/** Returns the key's segments. @throws InvalidBlobKey */
export function checkKey(key: string): string[] {
  if (Buffer.byteLength(key) > LONGEST_KEY) throw new InvalidBlobKey(key, `longer than ${LONGEST_KEY} bytes`);
  if (FORBIDDEN.test(key)) throw new InvalidBlobKey(key, 'holds a control character, a backslash or ~');
  const segments = key.split('/');
  for (const segment of segments) {
    if (segment === '' || segment === '.' || segment === '..') {
      throw new InvalidBlobKey(key, 'has an empty segment, . or ..');
    }
    if (Buffer.byteLength(segment) > LONGEST_SEGMENT) {
      throw new InvalidBlobKey(key, `has a segment longer than ${LONGEST_SEGMENT} bytes`);
    }
  }
  return segments;
}

/** Order of UTF-8 bytes, which is S3's; JavaScript's own differs beyond the basic plane. */
export const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Passes bytes through, hashing and counting them. */
export class Meter extends Transform {
  size_bytes = 0;
  private readonly hash: Hash = createHash('sha256');

  constructor(private readonly onBytes?: (size_bytes: number) => void) {
    super();
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.size_bytes += chunk.length;
    this.hash.update(chunk);
    this.onBytes?.(this.size_bytes);
    done(null, chunk);
  }

  /** Hash in hex; call once, after the last byte. */
  sha256(): string {
    return this.hash.digest('hex');
  }
}

/** Passes bytes through and fails at the end when they are not those of `sha256`. */
export class Verifier extends Meter {
  constructor(
    private readonly key: string,
    private readonly expected: string,
  ) {
    super();
  }

  override _flush(done: TransformCallback): void {
    done(this.sha256() === this.expected ? null : new BlobDamaged(this.key));
  }
}
