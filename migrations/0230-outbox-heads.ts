import type { Migration } from './index';

/**
 * Makes missing heads of the outbox. Until this step a restore emptied `outbox_heads` without filling it again, so that
 * no socket of a restored installation got a message.
 */
export const outboxHeads: Migration = {
  name: '0230-outbox-heads',
  up: (knex) =>
    knex.raw(`
      -- Writers hold this table until they commit: none of them has rows that the next statement does not see.
      lock table outbox_heads in share row exclusive mode;
      insert into outbox_heads (shard, id)
        select shard, coalesce((select max(o.id) from outbox o where o.shard = s.shard), 0)
        from generate_series(0, 63) s (shard)
        on conflict (shard) do nothing`),
};
