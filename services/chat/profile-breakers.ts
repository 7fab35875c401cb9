import {
  BrokenCircuitError,
  ConsecutiveBreaker,
  circuitBreaker,
  type CircuitBreakerPolicy,
  handleWhen,
} from 'cockatiel';
import { LRUCache } from 'lru-cache';
import type { Platform } from '../../domain/common/vendors';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { HttpFailed } from '../../vendors/http/port';
import { TokenUnavailable } from '../connections/connection-tokens';

/** Thrown instead of a call to a platform that failed again and again for an account. */
export class PlatformPaused extends Error {
  override readonly name = 'PlatformPaused';
}

export interface ProfileBreakers {
  /** @throws PlatformPaused while the breaker of the account and platform is open; and the errors of the call */
  run<T>(account_id: string, platform: Platform, call: () => Promise<T>): Promise<T>;
}

/** Failed look-ups in a row that open a breaker. Source: spec extra facts §11. */
const FAILURES = 5;
/** Time for which a breaker stays open. */
export const OPEN_MS = 15 * 60_000;
const MAX_BREAKERS = 10_000;

/** Whether the platform is unavailable or busy; a refusal is an answer. */
const isOutage = (error: unknown): boolean =>
  error instanceof NotSent ||
  error instanceof OutcomeUnknown ||
  error instanceof TokenUnavailable ||
  (error instanceof HttpFailed && (error.status === 429 || error.status >= 500));

/** Breakers of accounts and platforms, in this process. */
export function createProfileBreakers(): ProfileBreakers {
  const breakers = new LRUCache<string, CircuitBreakerPolicy>({ max: MAX_BREAKERS });
  function breakerOf(key: string): CircuitBreakerPolicy {
    const known = breakers.get(key);
    if (known !== undefined) return known;
    const breaker = new ConsecutiveBreaker(FAILURES);
    const made = circuitBreaker(handleWhen(isOutage), { halfOpenAfter: OPEN_MS, breaker });
    breakers.set(key, made);
    return made;
  }
  return {
    async run(account_id, platform, call) {
      try {
        return await breakerOf(`${account_id} ${platform}`).execute(call);
      } catch (error) {
        if (error instanceof BrokenCircuitError) throw new PlatformPaused(`${platform} failed ${FAILURES} times`);
        throw error;
      }
    },
  };
}
