import type { Caller, CallerKind } from '../authentication/caller';
import { CONTEXTS } from '../authentication/contexts';
import { networkOfAddress } from '../../lib/net/addresses';

/** A bucket and its units a minute; null is unlimited. */
export type Bucket = Pick<Caller, 'rate_bucket' | 'rate_limit'>;

/**
 * Network of an anonymous caller for rate limits: an IPv4 address, or the /64 of an IPv6 address. Text that is no
 * address has one bucket, because each spelling would otherwise have a limit of its own. Source: spec rulings,
 * "rate-limit buckets".
 */
export const networkOf = (ip: string): string => networkOfAddress(ip) || 'unknown';

/**
 * Upgrades have a bucket of their own per credential, so that reconnecting sockets do not use up a caller's requests.
 */
export const upgradeBucket = ({ credential_id, rate_bucket, rate_limit }: Caller): Bucket => ({
  rate_bucket: `upgrade:${credential_id ?? rate_bucket}`,
  rate_limit,
});

/**
 * Messages that a caller's sockets send: each costs a unit, a refused one several. Source: spec rulings, "sockets per
 * caller".
 */
export const messageBucket = ({ rate_bucket, rate_limit }: Bucket): Bucket => ({
  rate_bucket: `messages:${rate_bucket}`,
  rate_limit,
});

/** Bucket of failed credentials and refused upgrades, separate from the anonymous requests of the same network. */
export const failureBucket = (ip: string): Bucket => ({
  rate_bucket: `failed:${networkOf(ip)}`,
  rate_limit: CONTEXTS.anonymous.rate,
});

/** Bucket of a network for an operation that counts by address, whoever calls. */
export const networkBucket = (name: string, ip: string, per_minute: number): Bucket => ({
  rate_bucket: `network:${name}:${networkOf(ip)}`,
  rate_limit: per_minute,
});

/** Bucket of preflights, as large as that of a logged-in user, because browsers send a preflight per request. */
export const preflightBucket = (ip: string): Bucket => ({
  rate_bucket: `preflight:${networkOf(ip)}`,
  rate_limit: CONTEXTS.jwt.rate,
});

/** Units a minute of all keys of one account together, and of all its browser tokens. */
const ACCOUNT_UNITS = 6_000;
const KEYS: ReadonlySet<CallerKind> = new Set(['user_api_key', 'service_key']);
/** Tokens that stand in the addresses of browser sources, where viewers of a stream may read them. */
const BROWSER_TOKENS: ReadonlySet<CallerKind> = new Set(['popout', 'overlay', 'shared_overlay', 'extension', 'widget']);

/**
 * Common bucket of an account's keys, besides the bucket of each, because a member may create hundreds of keys. Browser
 * tokens share another one, so that a leaked token cannot use up the units of the keys. Null for other callers.
 */
export function accountBucket({ kind, client, account_id }: Caller): Bucket | null {
  if (account_id === null) return null;
  if (BROWSER_TOKENS.has(kind)) return { rate_bucket: `account-tokens:${account_id}`, rate_limit: ACCOUNT_UNITS };
  if (!KEYS.has(kind) && client === undefined) return null;
  return { rate_bucket: `account:${account_id}`, rate_limit: ACCOUNT_UNITS };
}

/** Bucket of an authenticated OAuth client's calls of the token endpoint. */
export const clientBucket = (client_id: string): Bucket => ({
  rate_bucket: `client-tokens:${client_id}`,
  rate_limit: CONTEXTS.jwt.rate,
});

/** KiB of events a minute that a credential emits; test events are counted apart. */
export const emittedBucket = (
  { credential_id, rate_bucket, rate_limit }: Caller,
  name: 'emitted' | 'tested',
  bytes: number,
): Bucket => ({
  rate_bucket: `${name}:${credential_id ?? rate_bucket}`,
  rate_limit: rate_limit === null ? null : Math.floor(bytes / 1024),
});

/** Bucket of one caller for an operation with a limit of its own. */
export const operationBucket = ({ rate_bucket, rate_limit }: Bucket, name: string, per_minute: number): Bucket => ({
  rate_bucket: `operation:${name}:${rate_bucket}`,
  rate_limit: rate_limit === null ? null : per_minute,
});
