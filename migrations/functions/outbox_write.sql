-- version 2
-- What builds before 0120-outbox-shards call: writes messages by outbox_append, with the shards that follow from the
-- names of their channels, and answers the newest id.
create or replace function outbox_write(
  p_channels text[], p_event_types text[], p_data text[], p_traces text[] default null
) returns bigint
language plpgsql as $body$
declare
  names  text[];
  shards int[];
  places int[];
begin
  select array_agg(name order by name), array_agg(outbox_shard(name) order by name) into names, shards
  from (select distinct unnest(p_channels) as name) channel;
  select array_agg(n.place order by c.nth) into places
  from unnest(p_channels) with ordinality as c (name, nth)
    join unnest(names) with ordinality as n (name, place) on n.name = c.name;
  return outbox_append(names, shards, null, places, p_event_types, p_data, p_traces);
end
$body$;
