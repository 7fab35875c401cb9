import { LRUCache } from 'lru-cache';

/** Distinct sets that are shared at a time, each of some kilobytes at most. */
const SHARED = 2_000;
const shared = new LRUCache<string, ReadonlySet<string>>({ max: SHARED });
const texts = new LRUCache<string, string>({ max: SHARED });

/**
 * The one set of these names: all who hold the same permissions share it, so that ten thousand sockets of one role hold
 * one set of 123 strings. Never changed by anybody.
 */
export function setOf(names: readonly string[]): ReadonlySet<string> {
  const key = names.join('\0'); // which no text of the database holds
  let set = shared.get(key);
  if (set === undefined) shared.set(key, (set = new Set(names)));
  return set;
}

/** The one copy of this text: ten thousand sockets of one account hold its id once. */
export function textOf(text: string): string {
  const known = texts.get(text);
  if (known === undefined) texts.set(text, text);
  return known ?? text;
}
