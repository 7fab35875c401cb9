-- version 1
-- The messages of these channels with these sequence numbers, in the order of their ids. The plan is said here, see
-- outbox_tail.
create or replace function outbox_bodies(p_channels text[], p_seqs bigint[])
returns table (
  shard int, id bigint, channel text, seq bigint, event_type text, data text, created_at timestamptz, trace text
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $body$
#variable_conflict use_column
begin
  return query
  select o.shard, o.id, o.channel, o.seq, o.event_type, o.data, o.created_at, o.trace
  from unnest(p_channels, p_seqs) as asked (channel, seq)
    join lateral (select * from outbox x where x.channel = asked.channel and x.seq = asked.seq) o on true
  order by o.id;
end
$body$;
