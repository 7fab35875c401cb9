import proxyAddr from '@fastify/proxy-addr';
import type { IncomingMessage } from 'node:http';
import { plainAddress } from '../../../lib/net/addresses';

/** True for the address of a trusted proxy, with or without a port. */
export type IsTrusted = (address: string, hop: number) => boolean;

/** @throws Error for a text that is neither an address nor a network */
export function trustedProxies(proxies: readonly string[]): IsTrusted {
  if (proxies.length === 0) return () => false;
  const trust = proxyAddr.compile([...proxies]);
  return (address, hop) => trust(plainAddress(address ?? ''), hop);
}

/** The client's address behind trusted proxies, for requests and upgrades; empty for text that is no address. */
export function clientIp(trusted_proxies: readonly string[]): (req: IncomingMessage) => string {
  if (trusted_proxies.length === 0) return (req) => plainAddress(req.socket.remoteAddress ?? '');
  const trust = trustedProxies(trusted_proxies);
  return (req) => plainAddress(proxyAddr(req, trust) ?? '');
}

/** The host that the client addressed, behind trusted proxies: the last one of `X-Forwarded-Host`, else `Host`. */
export function requestHost(trusted_proxies: readonly string[]): (req: IncomingMessage) => string | undefined {
  const trust = trustedProxies(trusted_proxies);
  return ({ headers, socket }) => {
    const forwarded = headers['x-forwarded-host'];
    if (forwarded === undefined || !trust(socket.remoteAddress ?? '', 0)) return headers.host;
    return String(forwarded).split(',').at(-1)!.trim();
  };
}
