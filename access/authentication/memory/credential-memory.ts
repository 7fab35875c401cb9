import { LRUCache } from 'lru-cache';
import { endsWith, type Recognised } from '../caller';
import type { SharedLookup } from '../contexts';
import { concernsAll, namedCredential, type Revocation } from '../revocations';

/** Below the second within which a revocation must reach every node. */
const REMEMBER_MS = 900;
const RIGHT = 20_000;
/** Separate and small, so that made-up tokens do not evict valid ones. */
const REFUSED = 1000;

interface Remembered {
  found: Recognised;
  /** `performance.now()` when the look-up began. */
  at: number;
}

/**
 * Caches the results of look-ups for less than a second: a credential costs at most one look-up in that time, and
 * concurrent requests share it. After `forget` the next request queries the database again.
 */
export class CredentialMemory {
  private readonly right = new LRUCache<string, Remembered>({ max: RIGHT });
  private readonly refused = new LRUCache<string, Remembered>({ max: REFUSED });
  private readonly loading = new Map<string, Promise<Recognised>>();
  private timer: NodeJS.Timeout | null = null;
  /** Raised by `forget`: the result of an earlier look-up is not cached. */
  private generation = 0;

  /** Rejects when the look-up does; a failure is not cached. */
  recall({ key, load }: SharedLookup): Recognised | Promise<Recognised> {
    const at = performance.now();
    const known = this.right.get(key) ?? this.refused.get(key);
    if (known && at - known.at < REMEMBER_MS) return known.found;
    const under_way = this.loading.get(key);
    if (under_way) return under_way;
    const { generation } = this;
    const started: Promise<Recognised> = load()
      .then((found) => {
        if (generation === this.generation) this.remember(key, { found, at });
        return found;
      })
      .finally(() => {
        if (this.loading.get(key) === started) this.loading.delete(key);
      });
    this.loading.set(key, started);
    return started;
  }

  /** Evicts the credentials that a revocation names, all when it names none, and drops pending look-ups. */
  forget(revocation: Partial<Revocation>): void {
    this.generation += 1;
    this.loading.clear();
    this.refused.clear();
    if (concernsAll(revocation)) this.right.clear();
    const { user_id, account_id } = revocation;
    const credential = namedCredential(revocation);
    for (const [key, { found }] of this.right.entries()) {
      const { caller } = found;
      if (caller === null) continue;
      const named =
        (credential && endsWith(caller, credential.id)) ||
        (user_id && caller.user_id === user_id) ||
        (account_id && !user_id && caller.account_id === account_id);
      if (named) this.right.delete(key);
    }
  }

  private remember(key: string, remembered: Remembered): void {
    const is_right = remembered.found.caller !== null;
    (is_right ? this.refused : this.right).delete(key);
    (is_right ? this.right : this.refused).set(key, remembered);
    this.evictExpired(remembered.at);
    this.timer ??= setTimeout(() => this.sweep(), REMEMBER_MS).unref();
  }

  /** Evicts expired entries on insert, because ten thousand connecting sockets would otherwise stay cached. */
  private evictExpired(now: number): void {
    for (const key of this.right.rkeys()) {
      if (now - (this.right.peek(key)?.at ?? 0) < REMEMBER_MS) return;
      this.right.delete(key);
    }
  }

  /** Evicts the last entries when no further insert follows. */
  private sweep(): void {
    this.timer = null;
    this.evictExpired(performance.now());
    if (this.right.size > 0) this.timer = setTimeout(() => this.sweep(), REMEMBER_MS).unref();
  }
}
