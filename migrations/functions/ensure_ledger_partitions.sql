-- version 3
-- Makes the partitions of this quarter and of those that begin within `ahead` months, and moves rows that came before
-- their quarter had one. A quarter each: a new id is looked for in all of them, so they are to be few. A key is unique
-- within a partition; between partitions the projector's fence keeps two writers apart. Safe to call from many
-- processes; answers how many it made: it ends behind a partition that took rows, so that each move is a transaction of
-- its own, and is to be called until it answers 0. The short lock_timeout bounds how long projectors wait behind the lock of the
-- default partition. Rows that a clock ahead of ours dated more than an hour into the future are dated to now first:
-- a look for an id passes over quarters that have not begun, which are therefore all that is searched. Where the id was
-- taken again meanwhile, that row stays. A backup reads rows after its snapshot and would miss these: they wait for it.
create or replace function ensure_ledger_partitions(ahead int) returns int
language plpgsql set lock_timeout = '300ms' set timezone = 'UTC' as $function$
declare
  quarter date;
  part    text;
  one     regclass;
  made    int := 0;
  moved   bigint;
  early   boolean;
begin
  -- Another process makes them.
  if not pg_try_advisory_xact_lock(hashtextextended('ensure_ledger_partitions', 0)) then return 0; end if;
  for one in
    select i.inhrelid from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'ledger'::regclass and (pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT'
      or substring(pg_get_expr(c.relpartbound, c.oid) from $$FROM \('([^']+)'\)$$)::timestamptz > now())
  loop
    execute format('select exists (select from %s where taken_at >= now() + interval ''1 hour'')', one) into early;
    continue when not early;
    -- Number of LOCKS.backup.
    exit when not pg_try_advisory_xact_lock(7070017);
    execute format($$delete from %s f using ledger l
      where f.taken_at >= now() + interval '1 hour' and l.taken_at < f.taken_at
        and l.account_id = f.account_id and l.external_id = f.external_id
        and l.projection = f.projection and l.topic = f.topic$$, one);
    execute format($$with moved as (delete from %s where taken_at >= now() + interval '1 hour' returning *)
      insert into ledger (projection, topic, account_id, external_id, record_id, taken_at)
      select projection, topic, account_id, external_id, record_id, now() from moved$$, one);
  end loop;
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
    get diagnostics moved = row_count;
    execute format('alter table ledger attach partition %s for values from (%L) to (%L)',
                   part, quarter::timestamptz, (quarter + interval '3 months')::timestamptz);
    made := made + 1;
    exit when moved > 0;
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
end $function$;
