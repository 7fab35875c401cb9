import type { Migration } from './index';

/**
 * Time series of live broadcasts, one row a minute (spec doc2 §2.14, "Time-series samples are 60-second"). Where the
 * server offers TimescaleDB the table is a hypertable; elsewhere it is partitioned by month. That the library is loaded
 * shows in a setting which it defines and every role may read; `shared_preload_libraries` needs the rights of
 * pg_read_all_settings. Nothing outside the migrations knows which kind it is: `ensure_stream_sample_partitions` has
 * nothing to do on a hypertable, and a rebuild makes another of the same kind (0018-rebuilt-tables).
 */
export const streamSamples: Migration = {
  name: '0013-stream-samples',
  async up(knex) {
    await knex.raw(`
      do $choose$
      declare
        hypertable boolean := false;
        columns text := $c$(
          account_id     uuid not null,
          platform       text not null,
          broadcast_id   text not null,
          sampled_at     timestamptz not null,
          viewer_count   bigint not null check (viewer_count >= 0),
          follower_count bigint check (follower_count >= 0),
          primary key (account_id, platform, broadcast_id, sampled_at)
        )$c$;
      begin
        if exists (select from pg_extension where extname = 'timescaledb') then
          hypertable := true;
        elsif current_setting('timescaledb.disable_load', true) is not null then
          begin
            create extension timescaledb;
            hypertable := true;
          exception when insufficient_privilege then
            -- Where only an administrator may create extensions, the table is partitioned unless they did so before the first start.
            raise notice 'timescaledb is loaded and may not be created by this role: stream_samples is partitioned';
          end;
        end if;
        if hypertable then
          execute 'create table stream_samples ' || columns;
          perform create_hypertable('stream_samples', 'sampled_at', chunk_time_interval => interval '1 day');
        else
          execute 'create table stream_samples ' || columns || ' partition by range (sampled_at)';
          create table stream_samples_default partition of stream_samples default;
        end if;
      end $choose$;

      -- Makes the partitions of this month and of the next \`ahead\` months; returns how many. A month that already has rows in the default
      -- partition stays there: its partition could not be attached without moving them.
      create function ensure_stream_sample_partitions(ahead int) returns int
      language plpgsql set lock_timeout = '10s' set timezone = 'UTC' as $$
      declare
        month date;
        part  text;
        made  int := 0;
        taken boolean;
      begin
        if (select relkind from pg_class where oid = 'stream_samples'::regclass) <> 'p' then return 0; end if;
        perform pg_advisory_xact_lock(hashtextextended('ensure_stream_sample_partitions', 0));
        for month in
          select m::date from generate_series(date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => ahead), '1 month') m
        loop
          part := 'stream_samples_' || to_char(month, 'YYYY_MM');
          continue when to_regclass(part) is not null;
          select exists (select from stream_samples_default where sampled_at >= month and sampled_at < month + interval '1 month') into taken;
          continue when taken;
          execute format('create table %I partition of stream_samples for values from (%L) to (%L)',
                         part, month::timestamptz, (month + interval '1 month')::timestamptz);
          made := made + 1;
        end loop;
        return made;
      end $$;

      select ensure_stream_sample_partitions(2);
    `);
  },
};
