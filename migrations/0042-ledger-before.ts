import { sqlFunction } from './functions';
import type { Migration } from './index';

/**
 * The earlier ids become the ledger's first partition. `ingested_ids` and `ingested_bodies` become views of the event
 * log's part of the ledger, for running processes of the previous release: they read everything, and their rows land
 * where this release searches. Their ids go into that first partition, which takes none that a later one has.
 */
export const ledgerBefore: Migration = {
  name: '0042-ledger-before',
  async up(knex) {
    await knex.raw(`
      set local lock_timeout = '10s';
      alter table ingested_ids rename to ledger_before;
      alter table ledger attach partition ledger_before for values from (minvalue) to ('2020-01-01 00:00:00+00');

      ${sqlFunction('ledger_taken_later')}
      create trigger ledger_taken_later before insert on ledger_before
        for each row execute function ledger_taken_later();

      create view ingested_ids as
        select account_id, topic, external_id, record_id, projection, taken_at from ledger where projection = 'event-log';
      alter view ingested_ids alter column projection set default 'event-log';
      alter view ingested_ids alter column taken_at set default '-infinity';

      lock table ingested_bodies in share row exclusive mode;
      -- What was written since the first copy, and by transactions that had begun before it.
      insert into ledger_bodies (projection, account_id, body, record_id, taken_at)
        select 'event-log', account_id, body, record_id, taken_at from ingested_bodies
        where taken_at > (select coalesce(max(taken_at), '-infinity') - interval '1 hour' from ledger_bodies)
        on conflict do nothing;
      drop table ingested_bodies;
      create view ingested_bodies as
        select account_id, body, record_id, taken_at, projection from ledger_bodies where projection = 'event-log';
      alter view ingested_bodies alter column projection set default 'event-log';
    `);
  },
};
