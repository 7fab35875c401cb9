import type { Migration } from './index';

/**
 * The outbox gets a lock of its own (7070008): under the one of domain events (7070002) each command waited for
 * projectors to commit. Calls that began earlier still run the text of 0017 and take the old lock alone. So both are
 * taken, the new one first, until no earlier transaction is left: then a projector deletes the mark
 * (projections/runtime/outbox/lock.ts). Decision 0010.
 */
export const outboxLock: Migration = {
  name: '0024-outbox-lock',
  async up(knex) {
    await knex.raw(`
      insert into installation (name, value) values ('outbox_lock', 'both');

      create or replace function outbox_write(p_channels text[], p_event_types text[], p_data text[], p_traces text[] default null)
      returns bigint
      language plpgsql as $body$
      declare
        seqs   bigint[];
        newest bigint;
      begin
        perform pg_advisory_xact_lock(7070008);
        if exists (select from installation where name = 'outbox_lock') then
          perform pg_advisory_xact_lock(7070002);
        end if;
        with head as (
          insert into channel_heads as h (channel, seq)
          select channel, count(*) from unnest(p_channels) as c (channel) group by channel
          on conflict (channel) do update set seq = h.seq + excluded.seq
          returning h.channel, h.seq
        ), message as (
          select channel, place, row_number() over (partition by channel order by place desc) - 1 as followers
          from unnest(p_channels) with ordinality as c (channel, place)
        )
        select array_agg(h.seq - m.followers order by m.place) into seqs from message m join head h using (channel);
        with written as (
          insert into outbox (channel, seq, event_type, data, created_at, trace)
          select m.channel, m.seq, m.event_type, m.data, clock_timestamp(), m.trace
          from (select unnest(p_channels), unnest(seqs), unnest(p_event_types), unnest(p_data), unnest(p_traces))
            as m (channel, seq, event_type, data, trace)
          returning id
        )
        select max(id) into newest from written;
        return newest;
      end
      $body$;
    `);
  },
};
