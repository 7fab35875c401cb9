-- version 1
-- Writes messages and answers the newest id. Always a projector's last statement before its commit. `p_names` are the
-- channels, each once, with their shards and the hashes of their names; `p_places` says for each message which of them
-- it goes to, counted from 1. The locks of the shards (7070016) are taken in ascending order and held from here to the
-- commit. Locks are released after the commit is visible, and each statement below takes a snapshot after they were
-- granted: within a shard ids follow the order of commits, and so do the sequences of its channels. While a build that
-- reads the outbox by one order of ids may be connected, the lock of all of it (7070008) is taken as well, and before
-- 0024-outbox-lock is through, that of the domain events (7070002).
create or replace function outbox_append(
  p_names text[], p_shards int[], p_hashes int[], p_places int[],
  p_event_types text[], p_data text[], p_traces text[] default null
) returns bigint
language plpgsql as $body$
declare
  marks  text[];
  seqs   bigint[];
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
  with head as (
    insert into channel_heads as h (channel, seq)
    select p_names[place], count(*) from unnest(p_places) as c (place) group by place order by 1
    on conflict (channel) do update set seq = h.seq + excluded.seq
    returning h.channel, h.seq
  ), message as (
    select place, nth, row_number() over (partition by place order by nth desc) - 1 as followers
    from unnest(p_places) with ordinality as c (place, nth)
  )
  select array_agg(h.seq - m.followers order by m.nth) into seqs
  from message m join head h on h.channel = p_names[m.place];
  with written as (
    insert into outbox (channel, seq, event_type, data, created_at, trace, shard, name_hash)
    select p_names[m.place], m.seq, m.event_type, m.data, clock_timestamp(), m.trace,
      p_shards[m.place], p_hashes[m.place]
    from (select unnest(p_places), unnest(seqs), unnest(p_event_types), unnest(p_data), unnest(p_traces))
      as m (place, seq, event_type, data, trace)
    returning id, shard
  ), moved as (
    update outbox_heads h set id = w.id
    from (select shard, max(id) as id from written group by shard) w where h.shard = w.shard
    returning h.id
  )
  select max(id) into newest from moved;
  return newest;
end
$body$;
