import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** The forms of RFC 7239 §6 and RFC 3986 §3.2.2: a port after an address, brackets around IPv6. */
const WITH_PORT = /^(?:\[([^[\]]*)\](?::\d{1,5})?|([^[\]]*):\d{1,5})$/;

/**
 * The one spelling of an IP address: without port, brackets and zone, IPv6 compressed and in lower case, IPv4-mapped
 * IPv6 as IPv4. Empty for text that is no address.
 */
export function plainAddress(text: string): string {
  const trimmed = text.trim();
  const kind = isIP(trimmed);
  if (kind === 4) return trimmed;
  if (kind === 6) return ofIPv6(trimmed);
  const [, bracketed, bare] = WITH_PORT.exec(trimmed) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? ofIPv6(bracketed) : '';
  if (bare === undefined || isIP(bare) === 0) return '';
  return isIP(bare) === 4 ? bare : ofIPv6(bare);
}

const ofIPv6 = (text: string): string => ipaddr.process(text.replace(/%.*$/, '')).toString();

/** Network of an address: an IPv4 address itself, the /64 of an IPv6 address. Empty for text that is no address. */
export function networkOfAddress(text: string): string {
  const address = plainAddress(text);
  if (!address.includes(':')) return address;
  const groups = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}
