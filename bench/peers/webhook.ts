import type pg from 'pg';
import { peer } from '../harness';
import { serveSignedWebhook } from './signed-webhook';

/**
 * A webhook endpoint as one writes it in an afternoon: Fastify, HMAC over the raw body, one INSERT, deduplicated by a
 * unique id.
 */
async function main(url: string, secret: string): Promise<void> {
  const { Pool } = peer<typeof pg>('pg');
  const pool = new Pool({ connectionString: url, max: 20 });
  await pool.query(`create table events (
    id bigint generated always as identity primary key, external_id text not null unique, type text not null, raw json not null,
    received_at timestamptz not null default now())`);
  await serveSignedWebhook(secret, async (text) => {
    const event = JSON.parse(text) as { type: string; message_id: string };
    await pool.query({
      name: 'insert',
      text: 'insert into events (external_id, type, raw) values ($1, $2, $3) on conflict (external_id) do nothing',
      values: [event.message_id, event.type, text],
    });
  });
}

void main(process.argv[2]!, process.argv[3]!);
