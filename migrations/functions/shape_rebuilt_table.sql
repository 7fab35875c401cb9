-- version 1
-- Makes of an empty copy what the original is beyond a PostgreSQL table: a hypertable by the same column with chunks
-- of the same length. Elsewhere, and for every other table, it does nothing and answers false.
create or replace function shape_rebuilt_table(original regclass, copy regclass) returns boolean language plpgsql as $$
declare
  dimension record;
begin
  if to_regclass('timescaledb_information.dimensions') is null then return false; end if;
  select d.column_name, d.time_interval into dimension
    from timescaledb_information.dimensions d
    join pg_class c on c.relname = d.hypertable_name
    join pg_namespace n on n.oid = c.relnamespace and n.nspname = d.hypertable_schema
    where c.oid = original and d.dimension_number = 1;
  if not found then return false; end if;
  -- Its indexes are copied by their names, the one that the extension makes among them.
  perform create_hypertable(
    copy, dimension.column_name, chunk_time_interval => dimension.time_interval, create_default_indexes => false
  );
  return true;
end $$;
