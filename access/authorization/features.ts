import { LRUCache } from 'lru-cache';
import {
  ACCOUNT_CREATION,
  ACCOUNT_FLAGS,
  accountCreationStatus,
  flagEnabled,
  flagReason,
  type FlagLayers,
  type FlagStatus,
  KNOWN_FLAGS,
} from '../../domain/operators/feature-flags';
import { FREE_PLAN_ID } from '../../domain/billing/plan-limits';
import type { AccountCreationOverride } from '../../domain/identity/user-overrides';
import type { Database, Queryable } from '../../engines/postgres/port';
import { runSingle, batchLookups, type CredentialLookup } from '../authentication/memory/credential-lookups';
import { concernsAll, type Revocation } from '../authentication/revocations';
import type { FeatureFlags } from '../../app/services';

const REMEMBER_MS = 900;
/** Number of cached accounts, each some kilobytes. */
const REMEMBERED = 5000;
/** Cache key for "no account". */
const NOBODY = '';

type Layer = 'global' | 'plan' | 'override';
type Switches = Readonly<Record<Layer, ReadonlyMap<string, boolean>>>;

/** Switches of an account's flags; without an account only the global ones. */
const SWITCHES: CredentialLookup<{ account_id: string | null }, Switches> = {
  name: 'feature-switches',
  takes: { account_id: 'uuid' },
  sql: ({ account_id }) =>
    `select (select jsonb_object_agg(key, enabled) from feature_flags) as global,
       (select jsonb_object_agg(flag, enabled) from account_feature_overrides where account_id = ${account_id})
         as override,
       (select jsonb_object_agg(flag, enabled) from plan_features
        where ${account_id}::uuid is not null
          and plan_id = coalesce((select plan_id from account_plans where account_id = ${account_id}),
                                 '${FREE_PLAN_ID}')) as plan`,
  found: (row) => ({ global: layerOf(row?.global), plan: layerOf(row?.plan), override: layerOf(row?.override) }),
};

const layerOf = (said: Record<string, boolean> | null): ReadonlyMap<string, boolean> =>
  new Map(Object.entries(said ?? {}));

const switchesOf = (db: Queryable, account_id: string | null) => runSingle(db)(SWITCHES, { account_id });

const layersOf = (key: string, { global, plan, override }: Switches, for_account: boolean): FlagLayers => ({
  global: global.get(key),
  plan: plan.get(key),
  override: override.get(key),
  for_account,
});

/**
 * Every account flag with the reason for being off, as guards evaluate it; excludes flags of the whole service. Source:
 * spec doc2 §2.2.
 */
export async function featureStatuses(db: Queryable, account_id: string): Promise<FlagStatus[]> {
  const switches = await switchesOf(db, account_id);
  return ACCOUNT_FLAGS.map(({ key }) => {
    const reason = flagReason(key, layersOf(key, switches, true));
    return { key, enabled: reason === null, reason };
  });
}

/** Keys of the enabled flags of {@link featureStatuses}. */
export const enabledOf = (statuses: readonly FlagStatus[]): string[] =>
  statuses.filter(({ enabled }) => enabled).map(({ key }) => key);

/** Keys of all flags that are not switched off globally. */
export async function globallyEnabled(db: Queryable): Promise<string[]> {
  const { global } = await switchesOf(db, null);
  return KNOWN_FLAGS.map(({ key }) => key).filter((key) => global.get(key) !== false);
}

/** Whether the user may create accounts; not cached. Source: spec doc1 §7.1 rule 4, doc2 §2.2. */
export async function accountCreation(db: Queryable, user_id: string): Promise<FlagStatus> {
  const [row] = await db.query<{ global: boolean | null; override: AccountCreationOverride | null }>(
    `select (select enabled from feature_flags where key = $2) as global,
            (select account_creation from user_overrides where user_id = $1) as override`,
    [user_id, ACCOUNT_CREATION],
    'account-creation',
  );
  return accountCreationStatus(row?.global ?? undefined, row?.override ?? 'default');
}

/**
 * Feature flags over the read models. An account's switches are read together, at most once per 0.9 s, so that a change
 * holds on every node within a second, and at once where `forget` is called.
 */
export function createFeatureFlags(deps: {
  db: Database;
}): FeatureFlags & { forget(revocation: Partial<Revocation>): void } {
  const remembered = new LRUCache<string, { switches: Promise<Switches> | Switches; at: number }>({ max: REMEMBERED });
  const ask = batchLookups(deps.db);

  function recall(account_id: string | null): Promise<Switches> | Switches {
    const key = account_id ?? NOBODY;
    const at = performance.now();
    const known = remembered.get(key);
    if (known && at - known.at < REMEMBER_MS) return known.switches;
    const switches = ask(SWITCHES, { account_id });
    const entry: { switches: Promise<Switches> | Switches; at: number } = { switches, at };
    remembered.set(key, entry);
    switches.then(
      (found) => (entry.switches = found),
      // A failed read is not cached; its waiters receive the error.
      () => {
        if (remembered.peek(key) === entry) remembered.delete(key);
      },
    );
    return switches;
  }

  return {
    enabled(flag, account_id) {
      const judged = (switches: Switches) => flagEnabled(flag, layersOf(flag, switches, account_id !== null));
      const switches = recall(account_id);
      return switches instanceof Promise ? switches.then(judged) : judged(switches);
    },
    forget(revocation) {
      if (revocation.account_id) remembered.delete(revocation.account_id);
      else if (concernsAll(revocation)) remembered.clear();
    },
  };
}
