import type { Readable } from 'node:stream';

export interface BlobInfo {
  key: string;
  size_bytes: number;
  /** Hex SHA-256 of the content. */
  sha256: string;
}

/** Large objects by key (`a/b/c`, no `..`). Contract: test/blobs.contract.ts. */
export interface Blobs {
  /** Streams the content in; it becomes visible whole or not at all. */
  put(key: string, content: Readable | Buffer, content_type?: string): Promise<BlobInfo>;
  /** Undefined when there is none. */
  get(key: string): Promise<Readable | undefined>;
  head(key: string): Promise<BlobInfo | undefined>;
  list(prefix: string): AsyncIterable<BlobInfo>;
  delete(key: string): Promise<void>;
  close(): Promise<void>;
}
