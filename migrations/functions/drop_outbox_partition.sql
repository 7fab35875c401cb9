-- version 1
-- Drops the eldest partition of the outbox whose youngest row is older than `p_keep`, and answers its name; null when
-- there is none. It waits for the tables no longer than writers and readers may be held up.
create or replace function drop_outbox_partition(p_keep interval) returns text
language plpgsql set lock_timeout = '300ms' set timezone = 'UTC' set datestyle = 'ISO' as $body$
declare
  eldest text;
begin
  perform pg_advisory_xact_lock(hashtextextended('ensure_outbox_partitions', 0));
  select part into eldest from (
    select c.oid::regclass::text as part,
      substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \(''([^'']+)''\)')::timestamptz as ends
    from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'outbox'::regclass
  ) parts where ends <= clock_timestamp() - p_keep order by ends limit 1;
  if eldest is not null then
    execute format('drop table %s', eldest);
  end if;
  return eldest;
end
$body$;
