-- version 1
-- Messages of a channel after `p_seq` that are younger than `p_window`, oldest first: at most `p_messages`, up to the
-- one whose data passes `p_bytes`. Tables that are dropped within minutes have no statistics: the plan is said here.
create or replace function outbox_page(p_channel text, p_seq bigint, p_window interval, p_messages int, p_bytes bigint)
returns table (
  shard int, id bigint, channel text, seq bigint, event_type text, data text, created_at timestamptz, trace text
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $body$
#variable_conflict use_column
begin
  return query
  select sized.shard, sized.id, sized.channel, sized.seq, sized.event_type, sized.data, sized.created_at, sized.trace
  from (
    select first.*, sum(octet_length(data)) over (order by seq rows between unbounded preceding and 1 preceding) as before
    from (
      select o.* from outbox o
      where o.channel = p_channel and o.seq > p_seq and o.created_at > statement_timestamp() - p_window
      order by o.seq limit p_messages
    ) first
  ) sized where coalesce(before, 0) < p_bytes order by seq;
end
$body$;
