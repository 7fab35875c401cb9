import type { Migration } from './index';

/**
 * A rebuild fills a copy of a table and replaces the table with it (projections/runtime/rebuild/shadow.ts).
 * `shape_rebuilt_table` gives the empty copy the properties of the original that a PostgreSQL table lacks: a hypertable
 * by the same column with chunks of the same length. Elsewhere, and for every other table, it does nothing. Only this
 * step and 0013 depend on TimescaleDB.
 */
export const rebuiltTables: Migration = {
  name: '0018-rebuilt-tables',
  async up(knex) {
    await knex.raw(`
      create function shape_rebuilt_table(original regclass, copy regclass) returns boolean language plpgsql as $$
      declare
        dimension record;
      begin
        if to_regclass('timescaledb_information.dimensions') is null then return false; end if;
        select d.column_name, d.time_interval into dimension
          from timescaledb_information.dimensions d
          join pg_class c on c.relname = d.hypertable_name join pg_namespace n on n.oid = c.relnamespace and n.nspname = d.hypertable_schema
          where c.oid = original and d.dimension_number = 1;
        if not found then return false; end if;
        -- Its indexes are copied by their names, the one that the extension makes among them.
        perform create_hypertable(copy, dimension.column_name, chunk_time_interval => dimension.time_interval, create_default_indexes => false);
        return true;
      end $$;
    `);
  },
};
