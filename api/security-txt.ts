import type { FastifyInstance } from 'fastify';
import type { Settings } from '../kernel/settings';

const YEAR_MS = 365 * 86_400_000;

/**
 * Where to tell of a weakness (RFC 9116), at the path that people look in and beside the API. In development nobody
 * need set anything; in production it is 404 while nobody set a contact. Source: spec doc1 §9.4, ruling c60.
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
