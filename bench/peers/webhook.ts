import { createHmac, timingSafeEqual } from 'node:crypto';
import type Fastify from 'fastify';
import type { FastifyRequest } from 'fastify';
import type pg from 'pg';
import { peer } from '../harness';
import { serve } from './listen';

/**
 * A webhook endpoint as one writes it in an afternoon: Fastify, HMAC over the raw body, one INSERT, deduplicated by a
 * unique id.
 */
async function main(url: string, secret: string): Promise<void> {
  const fastify = peer<typeof Fastify>('fastify');
  const { Pool } = peer<typeof pg>('pg');
  const pool = new Pool({ connectionString: url, max: 20 });
  await pool.query(`create table events (
    id bigint generated always as identity primary key, external_id text not null unique, type text not null, raw json not null,
    received_at timestamptz not null default now())`);
  const app = fastify({ logger: false });
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request: FastifyRequest, body: Buffer, done) =>
    done(null, body),
  );
  app.post('/v1/webhooks/trovo', async (request, reply) => {
    const body = request.body as Buffer;
    const given = Buffer.from(String(request.headers['x-trovo-signature']), 'hex');
    const wanted = createHmac('sha256', secret).update(body).digest();
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return reply.code(401).send({ error: true });
    const text = body.toString();
    const event = JSON.parse(text) as { type: string; message_id: string };
    await pool.query({
      name: 'insert',
      text: 'insert into events (external_id, type, raw) values ($1, $2, $3) on conflict (external_id) do nothing',
      values: [event.message_id, event.type, text],
    });
    return { success: true };
  });
  await serve(app);
}

void main(process.argv[2]!, process.argv[3]!);
