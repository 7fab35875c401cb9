-- version 1
-- Where the outbox ends: the positions that outbox_tail begins after, of shard 0 first.
create or replace function outbox_places() returns bigint[]
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $body$
  select array_agg(
    case shard when 64 then (select coalesce(max(o.id), 0) from outbox o where o.shard = 64) else id end order by shard)
  from outbox_heads
$body$;
