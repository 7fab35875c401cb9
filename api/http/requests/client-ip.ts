import proxyAddr from '@fastify/proxy-addr';
import type { IncomingMessage } from 'node:http';

/**
 * The client's address behind trusted proxies, as Fastify determines it for requests; upgrades bypass Fastify.
 */
export function clientIp(trusted_proxies: readonly string[]): (req: IncomingMessage) => string {
  if (trusted_proxies.length === 0) return (req) => req.socket.remoteAddress ?? '';
  const trust = proxyAddr.compile([...trusted_proxies]);
  return (req) => proxyAddr(req, trust);
}
