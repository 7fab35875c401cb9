-- version 1
-- Makes the partitions of this month, of the next `ahead` months, and of every month of the last ten years that has
-- rows in the default partition, whose rows move into it. Safe to call from many processes; answers how many
-- partitions it made.
create or replace function ensure_event_log_partitions(ahead int) returns int
language plpgsql set lock_timeout = '10s' set timezone = 'UTC' as $$
declare
  home  text;
  month date;
  part  text;
  made  int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('ensure_event_log_partitions', 0));
  select c.relnamespace::regnamespace::text into home from pg_class c where c.oid = 'platform_event_logs'::regclass;
  for month in execute format($q$
    select m::date from generate_series(
      date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => %2$s), '1 month') m
    union
    select date_trunc('month', created_at)::date from %1$s.platform_event_logs_default
    where created_at >= date_trunc('month', now()) - interval '10 years'
      and created_at < date_trunc('month', now()) + make_interval(months => %2$s + 1)
    order by 1 $q$, home, ahead)
  loop
    part := format('%s.platform_event_logs_%s', home, to_char(month, 'YYYY_MM'));
    continue when to_regclass(part) is not null;
    execute format('create table %s (like %s.platform_event_logs including all)', part, home);
    -- Rows of the month that came before its partition would make the attach fail: they move first, and none may come
    -- meanwhile.
    execute format('lock table %s.platform_event_logs_default in access exclusive mode', home);
    execute format('with moved as (delete from %1$s.platform_event_logs_default
                                    where created_at >= %3$L and created_at < %4$L returning *)
                    insert into %2$s select * from moved',
                   home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
    execute format('alter table %s.platform_event_logs attach partition %s for values from (%L) to (%L)',
                   home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
    made := made + 1;
  end loop;
  return made;
end $$;
