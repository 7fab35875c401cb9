import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Ranges of this machine and of private networks. */
const OWN: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal']);

/** Whether a host's name, which is no address, is one of this machine or of a private network. */
export const isOwnName = (host: string): boolean =>
  !host.includes('.') || /\.(localhost|local|internal|test|invalid)\.?$/.test(host);

/**
 * Whether an address is one of the open internet. Everything else is refused: private, loopback, link-local (cloud
 * metadata), shared, multicast and reserved ranges, and every IPv6 form that carries an IPv4 address (mapped, NAT64,
 * 6to4, Teredo, ISATAP, compatible), since who routes it decides where it leads. Of IPv6 only what is given out as
 * global unicast (2000::/3) is public. In development this machine and private networks may be allowed beside it.
 */
export function isPublic(address: string, allow_loopback = false): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.parse(address);
  const range = parsed.range();
  if (range !== 'unicast') return allow_loopback && OWN.has(range);
  return parsed instanceof ipaddr.IPv4 || isGlobal(parsed.parts);
}

/** ISATAP marks its interface identifiers by `0000:5efe` or `0200:5efe` before the IPv4 address. */
const isGlobal = ([first = 0, , , , marked = 0, isatap = 0]: readonly number[]): boolean =>
  first >> 13 === 1 && !((marked | 0x0200) === 0x0200 && isatap === 0x5efe);

/** Whether a host, a name or an address without brackets, may be one of the open internet, or one that is allowed. */
export const isPublicHost = (host: string, allow_loopback = false): boolean =>
  isIP(host) === 0 ? allow_loopback || !isOwnName(host) : isPublic(host, allow_loopback);
