import type { FastifyInstance } from 'fastify';
import type { Settings } from '../kernel/settings';

/**
 * Where to tell of a weakness (RFC 9116), at the path that people look in and beside the API; 404 while nobody set a
 * contact. Source: spec doc1 §9.4, ruling c60.
 */
export function registerSecurityTxt(
  app: FastifyInstance,
  { security: { contact, expires }, public_url }: Settings,
): void {
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
