import { LRUCache } from 'lru-cache';

/** Number of shared sets, each some kilobytes at most. */
const SHARED = 2_000;
const shared = new LRUCache<string, ReadonlySet<string>>({ max: SHARED });
const texts = new LRUCache<string, string>({ max: SHARED });

/**
 * Returns the shared set of these names, so that ten thousand sockets of one role hold one set of 123 strings. Never
 * modified.
 */
export function internSet(names: readonly string[]): ReadonlySet<string> {
  const key = names.join('\0'); // which no text of the database holds
  let set = shared.get(key);
  if (set === undefined) shared.set(key, (set = new Set(names)));
  return set;
}

/** Returns the shared copy of a text, so that ten thousand sockets of one account hold its id once. */
export function internString(text: string): string {
  const known = texts.get(text);
  if (known === undefined) texts.set(text, text);
  return known ?? text;
}
