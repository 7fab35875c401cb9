import type { Queryable } from '../../engines/postgres/port';

/** Bytes in order; a Node stream is one. Whoever stops reading ends it. */
export type Chunks = AsyncIterable<Uint8Array>;

/** Both ends included, as HTTP counts. */
export interface ByteRange {
  start: number;
  end: number;
}

/** Answer of a download. */
export interface Download {
  content_type: string;
  size_bytes: number;
  /** Tells versions of the content apart (its SHA-256); sent quoted. */
  etag: string;
  /** Default `no-store`, as for every answer. */
  cache_control?: string;
  /** For a browser that opens the content as a document. */
  content_security_policy?: string;
  /** Asked once, for the part that is sent; not at all for HEAD. */
  open(range: ByteRange): Chunks | Promise<Chunks>;
}

/** Answer of an attachment. */
export interface Attachment {
  filename: string;
  content_type: string;
  content: Chunks | Uint8Array | string;
}

/** How an answer that is no JSON document is sent. Such operations are REST's alone (ruling c45). */
export type Sends =
  /** `run` returns a {@link Download}: ranges, 206 and 416, ETag, 304, HEAD. */
  | { readonly kind: 'download'; readonly content_types: readonly string[] }
  /** `run` returns an {@link Attachment}. */
  | { readonly kind: 'attachment'; readonly content_types: readonly string[] }
  /** `run` returns items of the output, one JSON document a line, written as fast as they are read. */
  | {
      readonly kind: 'ndjson';
      /** A reader that takes nothing for this long is cut off: it holds a slot and a page of rows. */
      readonly stalled_ms: number;
      /** CSV for callers that accept it. */
      readonly csv: boolean;
    };

export const download = (...content_types: string[]) => ({ kind: 'download', content_types }) as const;
export const attachment = (...content_types: string[]) => ({ kind: 'attachment', content_types }) as const;
/** `csv`: callers that accept `text/csv` get the members of each item as columns. */
export const ndjson = ({ stalled_ms = 60_000, csv = false } = {}) => ({ kind: 'ndjson', stalled_ms, csv }) as const;

/** File of a multipart body, stored as a blob before `run`; the input's members are its text fields. */
export interface Upload {
  /** The part's name. */
  readonly file: string;
  /** No account may send more. */
  readonly most_bytes: number;
  /** Most bytes of a file for the caller's account; default {@link most_bytes}. */
  readonly mostBytes?: (account_id: string | null, db: Queryable) => Promise<number>;
  /** Status of a larger file; default 413. */
  readonly too_large_status?: 400 | 413;
  /**
   * Content type by the first bytes, whatever the part declares; null refuses it. Receives 4,100 bytes or all.
   */
  readonly sniff: (head: Uint8Array) => string | null;
  /** Accepted types, for people. */
  readonly content_types: readonly string[];
  /**
   * Blobs among these that the area references. Called a day after the process of an upload died, to delete the others;
   * an area that cannot answer throws.
   */
  readonly inUse: (keys: readonly string[], db: Queryable) => Promise<readonly string[]>;
}

/**
 * A file that was uploaded. It is `run`'s from now on; where `run` refuses, it is deleted, and where `run` fails, it is
 * swept unless the area references it.
 */
export interface UploadedFile {
  /** Of the blob. */
  key: string;
  /** As the client named it, without folders; '' when it did not. */
  filename: string;
  /** As sniffed. */
  content_type: string;
  size_bytes: number;
  /** Hex SHA-256. */
  sha256: string;
}

export const upload = (of: Upload): Upload => of;
