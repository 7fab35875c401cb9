import type { Migration } from './index';

/**
 * Makes `outbox_write` (see 0005 and 0011) cheaper: only channels are sorted and joined to number the messages, and the
 * messages, which are large, go from the lists to the table without an intermediate store.
 */
export const outboxNarrow: Migration = {
  name: '0017-outbox-narrow',
  async up(knex) {
    await knex.raw(`
      create or replace function outbox_write(p_channels text[], p_event_types text[], p_data text[], p_traces text[] default null)
      returns bigint
      language plpgsql as $body$
      declare
        seqs   bigint[];
        newest bigint;
      begin
        perform pg_advisory_xact_lock(7070002);
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
