import type { DocumentNode } from 'graphql';
import { createHash } from 'node:crypto';

/** Documents of the requests that Apollo is handling, by the hash of their text. */
export interface InFlightDocuments {
  /** Adds a document. Call the returned function when the request has been answered. */
  enter(text: string, document: DocumentNode): () => void;
  get(hash: string): DocumentNode | undefined;
}

/**
 * Document store for Apollo, which looks a document up by the SHA-256 of its text before it parses: returns the
 * prepared one.
 */
export function createPassing(): InFlightDocuments {
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
