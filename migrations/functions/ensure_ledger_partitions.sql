-- version 1
-- Makes the partitions of this quarter and of those that begin within `ahead` months, and moves rows that came before
-- their quarter had one. A quarter each: a new id is looked for in all of them, so they are to be few. A key is unique
-- within a partition; between partitions the projector's fence keeps two writers apart. Safe to call from many
-- processes; answers how many it made.
create or replace function ensure_ledger_partitions(ahead int) returns int
language plpgsql set lock_timeout = '10s' set timezone = 'UTC' as $$
declare
  quarter date;
  part    text;
  one     regclass;
  made    int := 0;
begin
  perform pg_advisory_xact_lock(hashtextextended('ensure_ledger_partitions', 0));
  if to_regclass('ledger_default') is null then
    create table ledger_default partition of ledger default;
  end if;
  for quarter in
    select q::date
    from generate_series(date_trunc('quarter', now()), now() + make_interval(months => ahead), '3 months') q
    union
    select date_trunc('quarter', taken_at)::date from ledger_default
    where taken_at >= now() - interval '10 years' and taken_at < now() + make_interval(months => ahead)
    order by 1
  loop
    part := format('ledger_%s_q%s', extract(year from quarter), extract(quarter from quarter));
    continue when to_regclass(part) is not null;
    execute format('create table %s (like ledger including defaults)', part);
    lock table ledger_default in access exclusive mode;
    execute format(
      'with moved as (delete from ledger_default where taken_at >= %L and taken_at < %L returning *)
       insert into %s select * from moved',
      quarter::timestamptz, (quarter + interval '3 months')::timestamptz, part);
    execute format('alter table ledger attach partition %s for values from (%L) to (%L)',
                   part, quarter::timestamptz, (quarter + interval '3 months')::timestamptz);
    made := made + 1;
  end loop;
  -- A restored partition comes without its key.
  for one in
    select i.inhrelid from pg_inherits i
    where i.inhparent = 'ledger'::regclass
      and not exists (select from pg_index k where k.indrelid = i.inhrelid and k.indisunique)
  loop
    execute format('create unique index on %s (account_id, external_id, projection, topic)', one);
  end loop;
  return made;
end $$;
