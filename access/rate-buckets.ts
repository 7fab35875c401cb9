import { isIPv4, isIPv6 } from 'node:net';
import type { Caller } from './caller';
import { CONTEXTS } from './contexts';

/** What units are counted against, and how many of them pass a minute; null is unlimited. */
export type Bucket = Pick<Caller, 'rate_bucket' | 'rate_limit'>;

/**
 * The network that an anonymous caller is counted by: an IPv4 address, or the /64 of an IPv6 address. Source: spec
 * rulings, "rate-limit buckets".
 */
export function networkOf(ip: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip);
  if (mapped) return mapped[1]!;
  const plain = ip.replace(/%.*$/, '');
  if (isIPv4(plain) || !isIPv6(plain)) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':');
    // An embedded IPv4 tail stands for two groups.
    const width = after.length + (after.at(-1)?.includes('.') ? 1 : 0);
    while (groups.length + width < 8) groups.push('0');
    groups.push(...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

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

/**
 * Credentials that do not count and upgrades that are refused: apart from the anonymous requests of the same network.
 */
export const failureBucket = (ip: string): Bucket => ({
  rate_bucket: `failed:${networkOf(ip)}`,
  rate_limit: CONTEXTS.anonymous.rate,
});

/** Preflights: as many as a logged-in user has requests, since browsers make them by themselves. */
export const preflightBucket = (ip: string): Bucket => ({
  rate_bucket: `preflight:${networkOf(ip)}`,
  rate_limit: CONTEXTS.jwt.rate,
});

/** What one caller may ask of one operation that has a limit of its own. */
export const operationBucket = ({ rate_bucket, rate_limit }: Bucket, name: string, per_minute: number): Bucket => ({
  rate_bucket: `operation:${name}:${rate_bucket}`,
  rate_limit: rate_limit === null ? null : per_minute,
});
