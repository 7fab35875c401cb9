import type { Migration } from './index';

/**
 * Signed bytes that have counted, where no signature covers the delivery's id: a second key of the ledger, kept for 7
 * days (projections/runtime/ledger/ledger.ts; spec rulings, "event identity of webhooks"). Like `ingested_ids` it is a
 * table of record. Earlier deliveries are inserted once, so that a delivery captured then makes no second event now:
 * their bytes, and the id inside a Trovo body, found as ingest/trovo/webhook.ts does.
 */
export const ingestedBodies: Migration = {
  name: '0022-ingested-bodies',
  async up(knex) {
    await knex.raw(`
      create table ingested_bodies (
        account_id uuid not null,
        -- Platform, type where each type counts once, and the SHA-256 of the stored bytes in hex.
        body       text collate "C" not null,
        record_id  uuid not null,
        taken_at   timestamptz not null default now(),
        primary key (account_id, body)
      );
      create index ingested_bodies_age on ingested_bodies (taken_at);

      insert into ingested_bodies (account_id, body, record_id)
        select account_id,
          platform || ':' || case platform when 'shopify' then type || ':' else '' end
            || encode(sha256(convert_to(raw::text, 'UTF8')), 'hex'), id
        from platform_event_logs
        where platform in ('kick', 'trovo', 'shopify') and external_id is not null
          and created_at > now() - interval '7 days' and raw::text <> '"[erased]"'
        order by created_at, id
        on conflict do nothing;

      insert into ingested_ids (account_id, topic, external_id, record_id)
        select e.account_id, 'platform-events', 'trovo:' || signed.id, e.id
        from platform_event_logs e cross join lateral (
          select btrim(m.value #>> '{}') as id
          from (values (1, e.raw), (2, e.raw -> 'data'), (3, e.raw -> 'event'), (4, e.raw -> 'payload')) l (nth, layer),
            lateral (values (1, l.layer -> 'message_id'), (2, l.layer -> 'event_id'), (3, l.layer -> 'eid'), (4, l.layer -> 'id'))
              m (rank, value)
          where json_typeof(m.value) in ('string', 'number') and btrim(m.value #>> '{}') <> ''
          order by l.nth, m.rank limit 1
        ) signed
        where e.platform = 'trovo' and e.type in ('trovo:subscribe', 'trovo:spell') and e.external_id is not null
          and e.created_at > now() - interval '7 days' and length(signed.id) <= 194
        order by e.created_at, e.id
        on conflict do nothing;
    `);
  },
};
