-- version 2
-- The next rows of all shards after the positions `p_after` (of shard 0 first; 64 is of rows whose writer knew of no
-- shards): about `p_messages`, whose data that is given away has about `p_bytes`. A message has its row only where the
-- bit of its name's hash is set in `p_heard`, whose number of bits is a power of two; for others no data is read.
-- Last comes a row without a shard, unless nothing is new: how many messages there were (id), the channel and seq of
-- each that has no row (channel), the positions from here on (data), the time of the newest (created_at), and 1 when
-- more is waiting, else 0 (seq). Tables that are dropped within minutes have no statistics, so the plan is set here: the
-- bounds and the order are of (shard, id), since an index on id alone would read the rows of all shards for each shard.
create or replace function outbox_tail(p_after bigint[], p_heard bytea, p_messages int, p_bytes bigint)
returns table (
  shard int, id bigint, channel text, seq bigint, event_type text, data text, created_at timestamptz, trace text
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $body$
#variable_conflict use_column
declare
  mask constant int := octet_length(p_heard) * 8 - 1;
begin
  return query
  with active as materialized (
    select h.shard, h.id as head, p_after[h.shard + 1] as after,
      greatest(1, p_messages / count(*) over ()) as most
    from outbox_heads h where h.id > p_after[h.shard + 1]
  ), found as materialized (
    select o.shard, o.id, o.channel, o.seq, o.event_type, case when o.heard then o.data end as data,
      case when o.heard then octet_length(o.data) end as size, o.created_at, o.trace, o.heard
    from active a cross join lateral (
      select x.*, x.name_hash is null or get_bit(p_heard, x.name_hash & mask) = 1 as heard
      from outbox x where (x.shard, x.id) > (a.shard, a.after) and (x.shard, x.id) < (a.shard + 1, 0)
      order by x.shard, x.id limit a.most
    ) o
  ), given as materialized (
    select * from (
      select f.*, sum(size) over (order by id rows between unbounded preceding and 1 preceding) as before from found f
    ) sized where coalesce(before, 0) < p_bytes
  ), place as (
    select a.shard, a.head, a.after, g.last, coalesce(f.n, 0) >= a.most or coalesce(g.n, 0) < coalesce(f.n, 0) as cut
    from active a
      left join (select shard, count(*) as n from found group by shard) f on f.shard = a.shard
      left join (select shard, count(*) as n, max(id) as last from given group by shard) g on g.shard = a.shard
  ), summary as (
    -- Of a shard that was read to its end the head is the place, also where its rows are gone already.
    select string_agg(shard || ':' || case when cut or shard = 64 then coalesce(last, after) else head end, ',') as at,
      bool_or(cut) as more
    from place
  )
  select * from (
    select g.shard, g.id, g.channel, g.seq, g.event_type, g.data, g.created_at, g.trace from given g where g.heard
    union all
    select null, (select count(*) from given),
      (select string_agg(u.channel || ' ' || u.seq, e'\n' order by u.id) from given u where not u.heard),
      s.more::int, null, s.at, (select max(n.created_at) from given n), null
    from summary s where s.at is not null
  ) answer order by shard is null, id;
end
$body$;
