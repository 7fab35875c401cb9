import type { FastifyInstance } from 'fastify';
import type { Settings } from '../../kernel/settings/settings';

const YEAR_MS = 365 * 86_400_000;

/**
 * Serves the contact for security reports (RFC 9116), at the standard path and under `/v1`. Development has a default
 * contact; in production the path is 404 without a configured one. Source: spec doc1 §9.4, ruling c60.
 */
export function registerSecurityTxt(app: FastifyInstance, { env, security, public_url }: Settings): void {
  const { contact, expires } =
    security.contact.length === 0 && env === 'development'
      ? { contact: ['mailto:security@localhost'], expires: new Date(Date.now() + YEAR_MS).toISOString() }
      : security;
  if (contact.length === 0 || expires === undefined) return;
  const lines = [
    ...contact.map((address) => `Contact: ${address}`),
    `Expires: ${expires}`,
    ...(public_url === undefined ? [] : [`Canonical: ${new URL('/.well-known/security.txt', public_url).href}`]),
  ];
  const text = `${lines.join('\n')}\n`;
  for (const path of ['/.well-known/security.txt', '/v1/.well-known/security.txt'])
    app.get(path, async (_request, reply) => reply.header('content-type', 'text/plain; charset=utf-8').send(text));
}
