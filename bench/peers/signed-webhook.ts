import { createHmac, timingSafeEqual } from 'node:crypto';
import type Fastify from 'fastify';
import type { FastifyRequest } from 'fastify';
import { peer } from '../harness';
import { serve } from './listen';

/** Serves Trovo's webhook with Fastify: verifies the HMAC over the raw body, then passes the body on. */
export async function serveSignedWebhook(secret: string, take: (text: string) => Promise<unknown>): Promise<void> {
  const fastify = peer<typeof Fastify>('fastify');
  const app = fastify({ logger: false });
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request: FastifyRequest, body: Buffer, done) =>
    done(null, body),
  );
  app.post('/v1/webhooks/trovo', async (request, reply) => {
    const body = request.body as Buffer;
    const given = Buffer.from(String(request.headers['x-trovo-signature']), 'hex');
    const wanted = createHmac('sha256', secret).update(body).digest();
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return reply.code(401).send({ error: true });
    await take(body.toString());
    return { success: true };
  });
  await serve(app);
}
