-- version 1
-- Makes the partitions of the outbox for now and two lengths more, where there are none. What comes at a time that has
-- no partition (a clock that was set) lies in the default one, and moves when its time gets one. While one order of
-- ids is read, they have an index by it. Safe to call from many processes; answers how many it made.
create or replace function ensure_outbox_partitions(p_length interval) returns int
language plpgsql set lock_timeout = '2s' set timezone = 'UTC' set datestyle = 'ISO' as $body$
declare
  place timestamptz;
  since timestamptz;
  part  text;
  made  int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('ensure_outbox_partitions', 0));
  for step in 0 .. 2 loop
    place := date_bin(p_length, clock_timestamp() + step * p_length, '2000-01-01 00:00:00+00');
    select greatest(place, max(ends)) into since from (
      select coalesce(substring(bound from 'FROM \(''([^'']+)''\)')::timestamptz, '-infinity') as begins,
        substring(bound from 'TO \(''([^'']+)''\)')::timestamptz as ends
      from (select pg_get_expr(c.relpartbound, c.oid) as bound from pg_inherits i join pg_class c on c.oid = i.inhrelid
            where i.inhparent = 'outbox'::regclass) parts
    ) bounds where begins < place + p_length and ends > place;
    since := coalesce(since, place);
    part := 'outbox_' || to_char(since, 'YYYY_MM_DD_HH24MISS');
    continue when since >= place + p_length or to_regclass(part) is not null;
    execute format('create table %I (like outbox including defaults) with (autovacuum_enabled = false)', part);
    execute format('create unique index on %I (channel, seq)', part);
    execute format('create index on %I (shard, id)', part);
    if exists (select from installation where name = 'outbox_one_order') then
      execute format('create index on %I (id)', part);
    end if;
    lock table outbox_default in access exclusive mode;
    execute format(
      'with moved as (delete from outbox_default where created_at >= %L and created_at < %L returning *)
       insert into %I select * from moved', since, place + p_length, part);
    execute format('alter table outbox attach partition %I for values from (%L) to (%L)',
                   part, since, place + p_length);
    made := made + 1;
  end loop;
  return made;
end
$body$;
