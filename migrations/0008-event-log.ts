import type { Migration } from './index';

/**
 * The event log (spec doc2 §2.15) and its counters. The parent is partitioned by month of `created_at`, so every unique
 * key holds `created_at` too; the ingest ledger (`ingested_ids`) makes a delivery that is repeated under another time
 * count once. `raw` is `json`, not `jsonb`: it keeps the received text, 820982911946154508 and member order included.
 */
export const eventLog: Migration = {
  name: '0008-event-log',
  async up(knex) {
    await knex.raw(`
      create table platform_event_logs (
        id          uuid not null,
        account_id  uuid not null,
        type        text not null check (char_length(type) <= 100),
        platform    text not null,
        external_id text,
        user_id     text,
        raw         json not null,
        created_at  timestamptz not null,
        primary key (id, created_at)
      ) partition by range (created_at);

      create unique index platform_event_logs_external_id on platform_event_logs (account_id, external_id, created_at)
        where external_id is not null;
      create index platform_event_logs_newest on platform_event_logs (account_id, created_at desc, id desc);
      create index platform_event_logs_type on platform_event_logs (account_id, type, platform, created_at desc, id desc);
      create index platform_event_logs_user on platform_event_logs (account_id, user_id, created_at desc, id desc)
        include (type, platform) where user_id is not null;

      create table platform_event_logs_default partition of platform_event_logs default;

      -- Kept by the projector in the transaction that writes the log: totals and the days a page lies in come from here.
      -- The fill factor leaves room for updates in place, since one row is raised again and again during its day.
      create table event_log_counters (
        account_id uuid not null,
        type       text not null,
        platform   text not null,
        day        date not null,
        count      bigint not null,
        primary key (account_id, type, platform, day)
      ) with (fillfactor = 70);

      -- Makes the partitions of this month, of the next \`ahead\` months, and of every month of the last ten years that has rows in
      -- the default partition, whose rows move into it. Safe to call from many processes; returns how many partitions it made.
      create function ensure_event_log_partitions(ahead int) returns int
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
          select m::date from generate_series(date_trunc('month', now()), date_trunc('month', now()) + make_interval(months => %2$s), '1 month') m
          union
          select date_trunc('month', created_at)::date from %1$s.platform_event_logs_default
          where created_at >= date_trunc('month', now()) - interval '10 years'
            and created_at < date_trunc('month', now()) + make_interval(months => %2$s + 1)
          order by 1 $q$, home, ahead)
        loop
          part := format('%s.platform_event_logs_%s', home, to_char(month, 'YYYY_MM'));
          continue when to_regclass(part) is not null;
          execute format('create table %s (like %s.platform_event_logs including all)', part, home);
          -- Rows of the month that came before its partition would make the attach fail: they move first, and none may come meanwhile.
          execute format('lock table %s.platform_event_logs_default in access exclusive mode', home);
          execute format('with moved as (delete from %1$s.platform_event_logs_default where created_at >= %3$L and created_at < %4$L returning *)
                          insert into %2$s select * from moved',
                         home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
          execute format('alter table %s.platform_event_logs attach partition %s for values from (%L) to (%L)',
                         home, part, month::timestamptz, (month + interval '1 month')::timestamptz);
          made := made + 1;
        end loop;
        return made;
      end $$;

      select ensure_event_log_partitions(2);
    `);
  },
};
