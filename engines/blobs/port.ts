import type { Readable } from 'node:stream';

export interface BlobInfo {
  key: string;
  size_bytes: number;
  /** Hex SHA-256 of the content. */
  sha256: string;
  /** As given to `put`; `application/octet-stream` when nothing was. */
  content_type: string;
}

export interface PutOptions {
  /**
   * The content's hash when it is known before the content, or null when the caller stores the returned hash: then a
   * store may omit it, so that `head` returns '' and `get` does not compare. In both cases the content is streamed to
   * the store. Default: the hash is computed before the upload.
   */
  sha256?: string | null;
  /** Approximate length of a stream's content. */
  about_bytes?: number;
}

/** Both ends included, as HTTP counts. */
export interface BlobRange {
  start: number;
  end: number;
}

/** A key that no adapter accepts. */
export class InvalidBlobKey extends Error {
  constructor(key: string, why: string) {
    super(`blob key ${JSON.stringify(key.slice(0, 120))}: ${why}`);
    this.name = 'InvalidBlobKey';
  }
}

/** The content differs from the content that was put: damaged at rest or in transit. */
export class BlobDamaged extends Error {
  constructor(key: string) {
    super(`blob ${key}: its content does not have the checksum that was stored with it`);
    this.name = 'BlobDamaged';
  }
}

/** Content of a file, read by parts. */
export interface FileParts {
  byteLength: number;
  /** Bytes from `start` up to `end` (exclusive; default: the end of the file). */
  slice(start: number, end?: number): Promise<ArrayBuffer>;
}

/** Files that other programs read as they are; a file is visible whole or not at all. */
export interface PlainFiles {
  put(key: string, content: Readable): Promise<void>;
  /** Undefined for a missing file. Its content stays readable until `close`, also while a `put` replaces the file. */
  open(key: string): Promise<(FileParts & { close(): Promise<void> }) | undefined>;
  /** A missing file is no error. */
  delete(key: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Large objects by key: `a/b/c`, segments of at most 200 bytes, 900 in all, without `..`, control characters,
 * backslashes and `~`. Never use a key that is a folder of others (`a` next to `a/b`), because S3 servers that store
 * files refuse it. Contract: test/contracts/blobs.ts, tested for every adapter. Every call throws {@link
 * InvalidBlobKey} for an invalid key.
 */
export interface Blobs {
  /**
   * Stores the content; durable when it resolves, and visible whole or not at all. Replaces an existing blob. @throws
   * BlobDamaged when the content does not have the hash of the options
   */
  put(key: string, content: Readable | Buffer, content_type?: string, options?: PutOptions): Promise<BlobInfo>;
  /**
   * Content of a blob; undefined for a missing one. The stream fails with {@link BlobDamaged} at its end when the
   * content differs from the content that was put.
   */
  get(key: string): Promise<Readable | undefined>;
  /**
   * Bytes of a blob from `start` to `end`, both included, and fewer where it ends before; undefined for a missing one.
   * Reads nothing else, and so compares no hash.
   */
  part(key: string, range: BlobRange): Promise<Readable | undefined>;
  head(key: string): Promise<BlobInfo | undefined>;
  /** Blobs whose keys begin with `prefix` (any text, '' for all), in the order of their keys' UTF-8 bytes. */
  list(prefix: string): AsyncIterable<BlobInfo>;
  /** Keys with this prefix, in the same order, without a request for each. */
  keys(prefix: string): AsyncIterable<string>;
  /** Deletes a blob; a missing one is no error. */
  delete(key: string): Promise<void>;
  close(): Promise<void>;
}
