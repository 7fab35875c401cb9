import { LRUCache } from 'lru-cache';

/** A cached value with its estimated size in memory. */
interface Sized {
  readonly bytes: number;
}

export interface DocumentCache<T extends Sized> {
  get(text: string): T | undefined;
  /** Caches a document on its first request; only the latest of these stay. */
  add(text: string, value: T): void;
  /**
   * Caches a document that is frequent enough to be compiled, apart from new ones, so that these cannot evict it; also
   * updates its size.
   */
  keep(text: string, value: T): void;
  /** Estimated bytes of all cached documents. */
  bytes(): number;
}

const MiB = 1024 * 1024;
const FRESH_BYTES = 16 * MiB;
const KEPT_BYTES = 64 * MiB;
/** Largest cached document; a larger one is prepared on each request. */
const LARGEST_BYTES = 4 * MiB;

/** Documents in two bounded parts, so that a flood of new ones does not evict the frequent ones. */
export function createDocumentCache<T extends Sized>(): DocumentCache<T> {
  const part = (maxSize: number) =>
    new LRUCache<string, T>({ maxSize, maxEntrySize: LARGEST_BYTES, sizeCalculation: ({ bytes }) => bytes });
  const fresh = part(FRESH_BYTES);
  const kept = part(KEPT_BYTES);
  return {
    get: (text) => kept.get(text) ?? fresh.get(text),
    add: (text, value) => void fresh.set(text, value),
    keep(text, value) {
      fresh.delete(text);
      kept.set(text, value, { size: value.bytes });
    },
    bytes: () => fresh.calculatedSize + kept.calculatedSize,
  };
}
