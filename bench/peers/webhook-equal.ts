import type pg from 'pg';
import { peer } from '../harness';
import { serveSignedWebhook } from './signed-webhook';

const SCHEMA = `
  create table channels (channel_id text primary key, account_id uuid not null);
  create table seen (account_id uuid not null, external_id text not null, seen_at timestamptz not null default now(),
    primary key (account_id, external_id));
  create table events (
    id uuid primary key default gen_random_uuid(), account_id uuid not null, type text not null, platform text not null,
    external_id text not null, user_id text, raw json not null, created_at timestamptz not null default now());
  create index on events (account_id, created_at desc);
  create index on events (account_id, type, created_at desc);
  create index on events (account_id, external_id);
  create table heads (channel text primary key, seq bigint not null);
  create table outbox (id bigint generated always as identity primary key, channel text not null, seq bigint not null,
    data text not null, unique (channel, seq));`;

/**
 * Stores a delivery in one transaction and one round trip: deduplicates, writes the log row and the numbered outbox
 * row, and notifies. A repetition writes nothing.
 */
const TAKE = `
  with fresh as (
    insert into seen (account_id, external_id) values ($1, $2) on conflict do nothing returning account_id, external_id
  ), logged as (
    insert into events (account_id, external_id, type, platform, user_id, raw)
    select account_id, external_id, $3, 'trovo', $4, $5::json from fresh returning id, account_id, created_at
  ), head as (
    insert into heads (channel, seq) select 'events:' || account_id, 1 from logged
    on conflict (channel) do update set seq = heads.seq + 1 returning channel, seq
  ), announced as (
    insert into outbox (channel, seq, data)
    select channel, seq, json_build_object('id', id, 'event_type', $3::text, 'created_at', created_at, 'raw', $5::json)
    from head, logged returning channel
  )
  select pg_notify('outbox', channel) from announced`;

/**
 * The work of a delivery in Lumio, as a good engineer writes it in a day: signature, account of the channel, one
 * transaction with all effects. Left out: encryption of personal data, and the log of records from which read models
 * can be rebuilt.
 */
async function main(url: string, secret: string, channel_id: string, connections: number): Promise<void> {
  const { Pool } = peer<typeof pg>('pg');
  const pool = new Pool({ connectionString: url, max: connections });
  await pool.query(SCHEMA);
  await pool.query('insert into channels values ($1, gen_random_uuid())', [channel_id]);
  const accounts = new Map<string, string>();
  const accountOf = async (channel: string): Promise<string | undefined> => {
    if (!accounts.has(channel)) {
      const { rows } = await pool.query<{ account_id: string }>(
        'select account_id from channels where channel_id = $1',
        [channel],
      );
      if (rows[0]) accounts.set(channel, rows[0].account_id);
    }
    return accounts.get(channel);
  };
  await serveSignedWebhook(secret, async (text) => {
    const event = JSON.parse(text) as { type: string; message_id: string; channel_id: string; user: { id: number } };
    const account_id = await accountOf(event.channel_id);
    if (account_id === undefined) return;
    const values = [account_id, event.message_id, event.type, String(event.user.id), text];
    await pool.query({ name: 'take', text: TAKE, values });
  });
}

void main(process.argv[2]!, process.argv[3]!, process.argv[4]!, Number(process.argv[5]));
