import { LRUCache } from 'lru-cache';
import { flagEnabled } from '../domain/feature-flags';
import type { Database } from '../engines/postgres/port';
import type { Revocation } from './revocations';
import type { FeatureFlags } from './services';

const REMEMBER_MS = 900;
/** Stands for "no account" among account ids. */
const NOBODY = '';

interface Switches {
  global: ReadonlyMap<string, boolean>;
  overrides: ReadonlyMap<string, boolean>;
}

/**
 * Feature flags over the read models: an account's switches are read together, at most once per 0.9 s, so that a change
 * holds within a second everywhere and at once where it is told through `forget`.
 */
export function createFeatureFlags(deps: {
  db: Database;
}): FeatureFlags & { forget(revocation: Partial<Revocation>): void } {
  const remembered = new LRUCache<string, { switches: Promise<Switches>; at: number }>({ max: 20_000 });

  async function read(account_id: string): Promise<Switches> {
    const rows = await deps.db.query(
      `select key, enabled, true as global from feature_flags
       union all select flag, enabled, false from account_feature_overrides where account_id = nullif($1, '')::uuid`,
      [account_id],
      'feature-switches',
    );
    const of = (global: boolean) =>
      new Map<string, boolean>(rows.filter((row) => row.global === global).map((row) => [row.key, row.enabled]));
    return { global: of(true), overrides: of(false) };
  }

  function switchesOf(account_id: string): Promise<Switches> {
    const at = performance.now();
    const known = remembered.get(account_id);
    if (known && at - known.at < REMEMBER_MS) return known.switches;
    const switches = read(account_id);
    const entry = { switches, at };
    remembered.set(account_id, entry);
    // A failed read is not remembered; whoever waits for it is told.
    switches.catch(() => {
      if (remembered.peek(account_id) === entry) remembered.delete(account_id);
    });
    return switches;
  }

  return {
    async enabled(flag, account_id) {
      const { global, overrides } = await switchesOf(account_id ?? NOBODY);
      return flagEnabled(flag, {
        global: global.get(flag),
        override: overrides.get(flag),
        for_account: account_id !== null,
      });
    },
    forget({ account_id }) {
      if (account_id) remembered.delete(account_id);
    },
  };
}
