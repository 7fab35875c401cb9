import { sqlFunction } from './functions';
import type { Migration } from './index';

/**
 * The ledger of topics belongs to the runtime: per projection, the record that each external id counts for. Partitioned
 * by the time of insertion, so that today's rows go into small indexes. Nothing is copied under a lock: the earlier
 * table becomes the ledger's first partition (0042), and the bodies of its seven days are copied while they are
 * written. The previous release finds both under their old names: see 0042. Decision 0016.
 */
export const ledger: Migration = {
  name: '0040-ledger',
  async up(knex) {
    await knex.raw(`
      create table ledger (
        projection  text not null,
        topic       text not null,
        account_id  uuid not null,
        external_id text not null,
        record_id   uuid not null,
        taken_at    timestamptz not null default now()
      ) partition by range (taken_at);

      -- Which signed bytes have counted, where no signature covers the id: see 0022. Kept for seven days.
      create table ledger_bodies (
        projection text not null,
        account_id uuid not null,
        -- Platform, type where each type counts once, and the SHA-256 of the stored bytes in hex.
        body       text collate "C" not null,
        record_id  uuid not null,
        taken_at   timestamptz not null default now(),
        primary key (account_id, body, projection)
      );
      create index ledger_bodies_age on ledger_bodies (taken_at);

      ${sqlFunction('ensure_ledger_partitions')}

      select ensure_ledger_partitions(2);

      insert into ledger_bodies (projection, account_id, body, record_id, taken_at)
        select 'event-log', account_id, body, record_id, taken_at from ingested_bodies;

      -- Stored values, not rewritten ones: what lies in the table of before was taken before all that is timed.
      alter table ingested_ids
        add column projection text not null default 'event-log',
        add column taken_at timestamptz not null default '-infinity',
        add constraint ledger_before_bound check (taken_at < '2020-01-01 00:00:00+00') not valid;
    `);
  },
};
