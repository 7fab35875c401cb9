import type { Readable } from 'node:stream';

export interface BlobInfo {
  key: string;
  size_bytes: number;
  /** Hex SHA-256 of the content. */
  sha256: string;
  /** As given to `put`; `application/octet-stream` when nothing was. */
  content_type: string;
}

/** A key that no adapter takes. */
export class InvalidBlobKey extends Error {
  constructor(key: string, why: string) {
    super(`blob key ${JSON.stringify(key.slice(0, 120))}: ${why}`);
    this.name = 'InvalidBlobKey';
  }
}

/** What was read is not what was put: damaged at rest or on the way. */
export class BlobDamaged extends Error {
  constructor(key: string) {
    super(`blob ${key}: its content does not have the checksum that was stored with it`);
    this.name = 'BlobDamaged';
  }
}

/**
 * Large objects by key: `a/b/c`, segments of at most 200 bytes, 900 in all, without `..`, control characters,
 * backslashes and `~`. Never use a key that is a folder of others (`a` beside `a/b`): S3 servers that keep files refuse
 * it. Contract: test/contracts/blobs.ts, held for every adapter. Every call throws {@link InvalidBlobKey} for a key
 * that is none.
 */
export interface Blobs {
  /**
   * Streams the content in; durable when it resolves, and visible whole or not at all. What was there before is
   * replaced.
   */
  put(key: string, content: Readable | Buffer, content_type?: string): Promise<BlobInfo>;
  /**
   * Undefined when there is none. The stream fails with {@link BlobDamaged} at its end when the content is not what was
   * put.
   */
  get(key: string): Promise<Readable | undefined>;
  head(key: string): Promise<BlobInfo | undefined>;
  /** Blobs whose keys begin with `prefix` (any text, '' for all), in the order of their keys' UTF-8 bytes. */
  list(prefix: string): AsyncIterable<BlobInfo>;
  /** No error when there is none. */
  delete(key: string): Promise<void>;
  close(): Promise<void>;
}
