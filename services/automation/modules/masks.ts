import { LRUCache } from 'lru-cache';
import type { Queryable } from '../../../engines/postgres/port';
import { compiledWords } from './compiled-words';
import { lineModules } from './line-modules';

/** Replaces filtered words of a text. */
export type Mask = (text: string) => string;

const NO_MASK: Mask = (text) => text;

/** Mask of an account's filtered words, as its word filter is now. */
export async function maskOf(db: Pick<Queryable, 'query'>, account_id: string): Promise<Mask> {
  const modules = (await lineModules(db, [account_id])).get(account_id) ?? [];
  const filter = modules.find(({ module_name }) => module_name === 'word_filter');
  return filter === undefined ? NO_MASK : compiledWords(filter.config).mask;
}

const REMEMBER_MS = 900;
/** Number of cached accounts. */
const REMEMBERED = 5_000;

/** Masks of accounts, each read at most once per 0.9 s. Returns a promise only when a look-up is needed. */
export function createMasks(db: () => Pick<Queryable, 'query'>): (account_id: string) => Promise<Mask> | Mask {
  const remembered = new LRUCache<string, { mask: Promise<Mask> | Mask }>({ max: REMEMBERED, ttl: REMEMBER_MS });
  return (account_id) => {
    const known = remembered.get(account_id);
    if (known) return known.mask;
    const mask = maskOf(db(), account_id);
    const entry: { mask: Promise<Mask> | Mask } = { mask };
    remembered.set(account_id, entry);
    mask.then(
      (found) => (entry.mask = found),
      // A failed read is not cached; its waiters receive the error.
      () => {
        if (remembered.peek(account_id) === entry) remembered.delete(account_id);
      },
    );
    return mask;
  };
}
