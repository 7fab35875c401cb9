import type { Migration } from './index';

/**
 * The ledger of topics is the runtime's: for each projection which record an external id counts for. Partitioned by the
 * time of taking, so that what is written today goes into small indexes. Nothing is copied under a lock: the table of
 * before becomes the ledger's first partition (0042), and the bodies of its seven days are copied while they are
 * written. A build before finds both under their old names: see 0042. Decision 0016.
 */
export const ledger: Migration = {
  name: '0040-ledger',
  async up(knex) {
    await knex.raw(`
      create table ledger (
        projection  text not null,
        topic       text not null,
        account_id  uuid not null,
        external_id text not null,
        record_id   uuid not null,
        taken_at    timestamptz not null default now()
      ) partition by range (taken_at);

      -- Which signed bytes have counted, where no signature covers the id: see 0022. Kept for seven days.
      create table ledger_bodies (
        projection text not null,
        account_id uuid not null,
        -- Platform, type where each type counts once, and the SHA-256 of the stored bytes in hex.
        body       text collate "C" not null,
        record_id  uuid not null,
        taken_at   timestamptz not null default now(),
        primary key (account_id, body, projection)
      );
      create index ledger_bodies_age on ledger_bodies (taken_at);

      -- Makes the partitions of this quarter and of those that begin within \`ahead\` months, and moves rows that came
      -- before their quarter had one. A quarter each: a new id is looked for in all of them, so they are to be few.
      -- A key is unique within a partition; between partitions the projector's fence keeps two writers apart.
      -- Safe to call from many processes; returns how many it made.
      create function ensure_ledger_partitions(ahead int) returns int
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

      select ensure_ledger_partitions(2);

      insert into ledger_bodies (projection, account_id, body, record_id, taken_at)
        select 'event-log', account_id, body, record_id, taken_at from ingested_bodies;

      -- Stored values, not rewritten ones: what lies in the table of before was taken before all that is timed.
      alter table ingested_ids
        add column projection text not null default 'event-log',
        add column taken_at timestamptz not null default '-infinity',
        add constraint ledger_before_bound check (taken_at < '2020-01-01 00:00:00+00') not valid;
    `);
  },
};
