import { LRUCache } from 'lru-cache';
import type { Cache } from './port';

/** A bounded cache of a single process. */
export function createLocalCache(max_entries = 10_000): Cache {
  const entries = new LRUCache<string, string>({ max: max_entries });
  return {
    get: async (key) => entries.get(key),
    set: async (key, value, ttl_seconds) => void entries.set(key, value, { ttl: ttl_seconds * 1000 }),
    delete: async (key) => void entries.delete(key),
    ping: async () => true,
    close: async () => entries.clear(),
  };
}
