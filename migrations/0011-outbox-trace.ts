import type { Knex } from 'knex';
import type { Migration } from './index';

/**
 * Channel messages carry the trace they belong to, so that a push is part of the trace of the webhook that led to it.
 */
export const outboxTrace: Migration = {
  name: '0011-outbox-trace',
  async up(knex: Knex): Promise<void> {
    await knex.raw(`
      alter table outbox add column trace text;

      -- The same as before (see 0005) with one list more; a caller that does not know it passes three, as it did.
      drop function outbox_write(text[], text[], text[]);
      create function outbox_write(p_channels text[], p_event_types text[], p_data text[], p_traces text[] default null)
      returns bigint
      language plpgsql as $body$
      declare
        newest bigint;
      begin
        perform pg_advisory_xact_lock(7070002);
        with message as materialized (
          select m.channel, m.event_type, m.data, m.trace, m.place,
                 row_number() over (partition by m.channel order by m.place) as nth
          from unnest(p_channels, p_event_types, p_data, p_traces)
            with ordinality as m (channel, event_type, data, trace, place)
        ), head as (
          insert into channel_heads as h (channel, seq)
          select channel, count(*) from message group by channel
          on conflict (channel) do update set seq = h.seq + excluded.seq
          returning h.channel, h.seq
        ), total as (
          select channel, count(*) as messages from message group by channel
        ), written as (
          insert into outbox (channel, seq, event_type, data, created_at, trace)
          select m.channel, h.seq - t.messages + m.nth, m.event_type, m.data, clock_timestamp(), m.trace
          from message m join head h using (channel) join total t using (channel)
          order by m.place
          returning id
        )
        select max(id) into newest from written;
        return newest;
      end
      $body$;
    `);
  },
};
