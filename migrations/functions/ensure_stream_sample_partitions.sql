-- version 2
-- Makes the partitions of this month and of the next `ahead` months; answers how many. A month that already has rows
-- in the default partition stays there: its partition could not be attached without moving them. A hypertable needs
-- none.
create or replace function ensure_stream_sample_partitions(ahead int) returns int
language plpgsql set lock_timeout = '300ms' set timezone = 'UTC' as $$
declare
  month date;
  part  text;
  made  int := 0;
  taken boolean;
begin
  if (select relkind from pg_class where oid = 'stream_samples'::regclass) <> 'p' then return 0; end if;
  -- Another process makes them.
  if not pg_try_advisory_xact_lock(hashtextextended('ensure_stream_sample_partitions', 0)) then return 0; end if;
  for month in
    select m::date from generate_series(
      date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => ahead), '1 month') m
  loop
    part := 'stream_samples_' || to_char(month, 'YYYY_MM');
    continue when to_regclass(part) is not null;
    select exists (
      select from stream_samples_default where sampled_at >= month and sampled_at < month + interval '1 month'
    ) into taken;
    continue when taken;
    execute format('create table %I partition of stream_samples for values from (%L) to (%L)',
                   part, month::timestamptz, (month + interval '1 month')::timestamptz);
    made := made + 1;
  end loop;
  return made;
end $$;
