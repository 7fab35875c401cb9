import proxyAddr from '@fastify/proxy-addr';
import type { IncomingMessage } from 'node:http';

/**
 * The client's address behind the proxies that are trusted, as Fastify finds it for requests; upgrades do not pass
 * Fastify.
 */
export function clientIp(trusted_proxies: readonly string[]): (req: IncomingMessage) => string {
  if (trusted_proxies.length === 0) return (req) => req.socket.remoteAddress ?? '';
  const trust = proxyAddr.compile([...trusted_proxies]);
  return (req) => proxyAddr(req, trust);
}
