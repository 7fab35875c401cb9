import type { DocumentNode } from 'graphql';
import { createHash } from 'node:crypto';

/** Documents of the requests that are inside Apollo at this moment, by the hash of their text. */
export interface Passing {
  /** Call what is returned when the request has been answered. */
  enter(text: string, document: DocumentNode): () => void;
  get(hash: string): DocumentNode | undefined;
}

/**
 * Apollo looks for a parsed document under the SHA-256 of its text before it parses: here it finds the one that was
 * prepared.
 */
export function createPassing(): Passing {
  const inside = new Map<string, { document: DocumentNode; requests: number }>();
  return {
    enter(text, document) {
      const hash = createHash('sha256').update(text).digest('hex');
      const entry = inside.get(hash) ?? { document, requests: 0 };
      entry.requests += 1;
      inside.set(hash, entry);
      return () => {
        entry.requests -= 1;
        if (entry.requests === 0) inside.delete(hash);
      };
    },
    get: (hash) => inside.get(hash)?.document,
  };
}
