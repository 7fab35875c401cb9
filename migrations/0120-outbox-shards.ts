import { sqlFunction } from './functions';
import type { Migration } from './index';

/**
 * The outbox in 64 shards, each with its own lock, and in partitions of minutes that are dropped instead of emptied.
 * The ids stay those of one sequence: the previous release reads them in one order, and while one of its processes may
 * be connected each writer also holds the lock of all (the mark `outbox_one_order`, see
 * projections/runtime/outbox/order.ts). A call that began before this step runs the function's text of 0024 and passes
 * no shard: its rows are of shard 64, which is read until no process of the previous release is connected. Nothing is
 * copied: the earlier table is the first partition. Decision 0040.
 */
export const outboxShards: Migration = {
  name: '0120-outbox-shards',
  async up(knex) {
    await knex.raw(`
      lock table outbox in access exclusive mode;
      -- Where nothing was ever written and nobody is connected, no call of before can be at work either.
      do $$
      begin
        if exists (select from channel_heads) or exists (
          select from pg_stat_activity where datname = current_database() and application_name = 'lumio wakeups')
        then
          insert into installation (name, value) values ('outbox_one_order', 'kept');
        else
          delete from installation where name = 'outbox_lock';
        end if;
      end $$;

      create table outbox_heads (
        shard integer primary key,
        -- The newest id of the shard; of shard 64, which has no head, more than any.
        id    bigint not null
      ) with (fillfactor = 10);

      alter table outbox rename to outbox_before;
      alter table outbox_before rename constraint outbox_pkey to outbox_before_pkey;
      alter index outbox_channel_seq rename to outbox_before_channel_seq;
      create sequence outbox_ids;
      select setval('outbox_ids', greatest(1, (select coalesce(max(id), 0) from outbox_before) + 1), false);
      alter table outbox_before alter column id drop identity;
      alter table outbox_before add column shard integer not null default 64, add column name_hash integer;

      -- Without indexes of its own: the table of before has others than those that follow it.
      create table outbox (
        id         bigint not null default nextval('outbox_ids'),
        channel    text not null,
        -- Dense per channel: held by channel_heads, since no key can span partitions.
        seq        bigint not null,
        event_type text not null,
        data       text not null,
        created_at timestamptz not null,
        trace      text,
        -- Of the account whose the channel is (lib/hash/shards.ts); 64: of a writer that did not know of shards.
        shard      integer not null default 64,
        -- Of the channel's name; null: not known.
        name_hash  integer
      ) partition by range (created_at);
      alter sequence outbox_ids owned by outbox.id;
      create table outbox_default partition of outbox default;
      create unique index outbox_default_channel_seq on outbox_default (channel, seq);
      create index outbox_default_shard_id on outbox_default (shard, id);
      create index outbox_default_id on outbox_default (id);

      insert into outbox_heads (shard, id)
        select shard, case shard when 64 then 9223372036854775807 else (select coalesce(max(id), 0) from outbox_before) end
        from generate_series(0, 64) shard
        where shard < 64 or exists (select from installation where name = 'outbox_one_order');

      do $$
      declare
        ends timestamptz;
      begin
        if not exists (select from outbox_before) then
          drop table outbox_before;
          return;
        end if;
        select greatest(clock_timestamp(), max(created_at) + interval '1 microsecond') into ends from outbox_before;
        execute format('alter table outbox attach partition outbox_before for values from (minvalue) to (%L)', ends);
      end $$;

      ${sqlFunction('ensure_outbox_partitions')}
      select ensure_outbox_partitions('3 minutes');

      ${sqlFunction('outbox_shard')}
      ${sqlFunction('outbox_append')}
      ${sqlFunction('outbox_write')}
    `);
  },
};
