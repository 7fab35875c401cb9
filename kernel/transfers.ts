import type { Queryable } from '../engines/postgres/port';

/** Bytes in order; a Node stream is one. Whoever stops reading ends it. */
export type Chunks = AsyncIterable<Uint8Array>;

/** Both ends included, as HTTP counts. */
export interface ByteRange {
  start: number;
  end: number;
}

/** What a download answers with. */
export interface Download {
  content_type: string;
  size_bytes: number;
  /** Tells versions of the content apart (its SHA-256); sent quoted. */
  etag: string;
  /** Default `no-store`, as for every answer. */
  cache_control?: string;
  /** Asked once, for the part that is sent; not at all for HEAD. */
  open(range: ByteRange): Chunks | Promise<Chunks>;
}

/** What an attachment answers with. */
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
      /** A reader that takes nothing for so long is cut off: it holds a place and a page of rows. */
      readonly stalled_ms: number;
    };

export const download = (...content_types: string[]) => ({ kind: 'download', content_types }) as const;
export const attachment = (...content_types: string[]) => ({ kind: 'attachment', content_types }) as const;
export const ndjson = ({ stalled_ms = 60_000 } = {}) => ({ kind: 'ndjson', stalled_ms }) as const;

/** One file of a multipart body, taken into the blobs before `run`, beside the input's members as text fields. */
export interface Upload {
  /** The part's name. */
  readonly file: string;
  readonly most_bytes: number;
  /**
   * The type that the first bytes show, whatever the part says of itself; null refuses it. Given 4,100 bytes or all.
   */
  readonly sniff: (head: Uint8Array) => string | null;
  /** What is taken, for people. */
  readonly content_types: readonly string[];
  /**
   * Those of these blobs that the area names. Asked a day later of uploads whose process died, to delete the others: an
   * area that cannot say throws.
   */
  readonly inUse: (keys: readonly string[], db: Queryable) => Promise<readonly string[]>;
}

/** A file that was uploaded. It is `run`'s from now on; where `run` throws, it is deleted. */
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
