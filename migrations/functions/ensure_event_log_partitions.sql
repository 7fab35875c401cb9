-- version 3
-- Makes the partitions of this month, of the next `ahead` months, of each of the last 13 months that has rows in the
-- default partition, and of each month of the last ten years that has 10,000 of them; the rows move into it. Queries
-- without a lower bound read all partitions, so that a few rows of an old month make none. Safe to call from many
-- processes. Returns the number of new partitions; it must be called until it returns 0, because it ends after a
-- partition that took rows: the default partition is locked for one month at a time. The short lock_timeout bounds how
-- long writers wait behind that lock.
create or replace function ensure_event_log_partitions(ahead int) returns int
language plpgsql set lock_timeout = '300ms' set timezone = 'UTC' as $$
declare
  home  text;
  month date;
  part  text;
  made  int := 0;
  moved bigint;
begin
  -- Another process makes them.
  if not pg_try_advisory_xact_lock(hashtextextended('ensure_event_log_partitions', 0)) then return 0; end if;
  select c.relnamespace::regnamespace::text into home from pg_class c where c.oid = 'platform_event_logs'::regclass;
  for month in execute format($q$
    select m::date from generate_series(
      date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => %2$s), '1 month') m
    union
    select date_trunc('month', created_at)::date from %1$s.platform_event_logs_default
    where created_at >= date_trunc('month', now()) - interval '10 years'
      and created_at < date_trunc('month', now()) + make_interval(months => %2$s + 1)
    group by 1
    having date_trunc('month', min(created_at)) >= date_trunc('month', now()) - interval '13 months'
      or count(*) >= 10000
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
    get diagnostics moved = row_count;
    execute format('alter table %s.platform_event_logs attach partition %s for values from (%L) to (%L)',
                   home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
    made := made + 1;
    exit when moved > 0;
  end loop;
  return made;
end $$;
