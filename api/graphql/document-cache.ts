import { LRUCache } from 'lru-cache';

/** What is kept under a document's text, with its estimated size in memory. */
interface Sized {
  readonly bytes: number;
}

export interface DocumentCache<T extends Sized> {
  get(text: string): T | undefined;
  /** Keeps what was seen for the first time; of such only the latest stay. */
  add(text: string, value: T): void;
  /**
   * Keeps what has come often enough to be compiled, where what comes once cannot push it out; also after it has grown.
   */
  keep(text: string, value: T): void;
  /** Estimated bytes of everything that is kept. */
  bytes(): number;
}

const MiB = 1024 * 1024;
const FRESH_BYTES = 16 * MiB;
const KEPT_BYTES = 64 * MiB;
/** What is larger is worked through each time that it comes. */
const LARGEST_BYTES = 4 * MiB;

/** Documents in two bounded parts, so that a flood of new ones leaves alone those that keep coming. */
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
