import type { Migration } from './index';

/**
 * Late records and figures that outlive their rows. `late_spans`: times of records that were applied late, stored in
 * the transaction that applied them, until the finished sessions of that time are counted again. `chat_minute_counts`:
 * messages that retention or an erasure has deleted, by minute and person (the nil id of an anonymous one); a
 * minute is split where a broadcast begins or ends. `counted_events`: figures of events that retention has deleted or
 * an erasure has emptied.
 * `session_row_counts` has no reader any more.
 */
export const lateSpans: Migration = {
  name: '0600-late-spans',
  up: (knex) =>
    knex.raw(`
      create table late_spans (
        id         bigint generated always as identity primary key,
        account_id uuid not null,
        since      timestamptz not null,
        until      timestamptz not null
      );

      create table chat_minute_counts (
        account_id   uuid not null,
        platform     text not null,
        since        timestamptz not null,
        live_chat_id text not null,
        person_key   uuid not null,
        count        bigint not null,
        emotes       jsonb,
        primary key (account_id, platform, since, live_chat_id, person_key)
      );
      create index chat_minute_counts_person on chat_minute_counts (person_key) where emotes is not null;

      create table counted_events (
        account_id uuid not null,
        id         uuid not null,
        platform   text not null,
        type       text not null,
        created_at timestamptz not null,
        counts     jsonb not null,
        primary key (account_id, id)
      );
      create index counted_events_created on counted_events (account_id, platform, created_at)`),
};
