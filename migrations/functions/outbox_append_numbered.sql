-- version 1
-- Writes messages and answers the newest id. Always a projector's last statement before its commit. `p_names` are the
-- channels, each once, with their shards, the hashes of their names and how many messages each gets; `p_places` says
-- for each message which of them it goes to, and `p_numbers` which of its channel's messages it is, both counted from 1.
-- The locks of the shards (7070016) are taken in ascending order and held from here to the commit. Locks are released
-- after the commit is visible, and each statement below takes a snapshot after they were granted: within a shard ids
-- follow the order of commits, and so do the sequences of its channels. While a build that reads the outbox by one order
-- of ids may be connected, the lock of all of it (7070008) is taken as well, and before 0024-outbox-lock is through,
-- that of the domain events (7070002).
create or replace function outbox_append_numbered(
  p_names text[], p_shards int[], p_hashes int[], p_counts int[], p_places int[], p_numbers int[],
  p_event_types text[], p_data text[], p_traces text[] default null
) returns bigint
language plpgsql as $body$
declare
  marks  text[];
  before bigint[];
  newest bigint;
begin
  perform pg_advisory_xact_lock(7070016, shard) from (select distinct unnest(p_shards) as shard order by 1) ascending;
  select array_agg(name) into marks from installation where name in ('outbox_lock', 'outbox_one_order');
  if marks is not null then
    perform pg_advisory_xact_lock(7070008);
    if 'outbox_lock' = any (marks) then
      perform pg_advisory_xact_lock(7070002);
    end if;
  end if;
  with asked as (
    select name, count, nth from unnest(p_names, p_counts) with ordinality as c (name, count, nth)
  ), head as (
    insert into channel_heads as h (channel, seq) select name, count from asked order by 1
    on conflict (channel) do update set seq = h.seq + excluded.seq
    returning h.channel, h.seq
  )
  select array_agg(h.seq - a.count order by a.nth) into before from asked a join head h on h.channel = a.name;
  insert into outbox (channel, seq, event_type, data, created_at, trace, shard, name_hash)
    select p_names[m.place], before[m.place] + m.number, m.event_type, m.data, clock_timestamp(), m.trace,
      p_shards[m.place], p_hashes[m.place]
    from (select unnest(p_places), unnest(p_numbers), unnest(p_event_types), unnest(p_data), unnest(p_traces))
      as m (place, number, event_type, data, trace);
  -- The last id given here is above those of every row of these shards, and whoever comes next gets a higher one.
  newest := currval('outbox_ids');
  update outbox_heads set id = newest where shard = any (p_shards);
  return newest;
end
$body$;
