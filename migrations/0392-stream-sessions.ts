import type { Migration } from './index';

/**
 * Sessions of streams. `stream_sessions`, `session_streams` and `session_links` are read models. `session_claims` holds
 * which session a broadcast belongs to, and `live_session_figures` the newest figures of those on air; both are kept by
 * the sweep, and are made again where they are lost. `sums` of both tables: spec doc2 §2.14.
 */
export const streamSessions: Migration = {
  name: '0392-stream-sessions',
  up: (knex) =>
    knex.raw(`
      alter table stream_samples add column stream_title text, add column category text;
      create index channel_status_updated on channel_status (updated_at);

      create table stream_sessions (
        id              uuid primary key,
        account_id      uuid not null,
        is_live         boolean not null,
        title           text,
        titles          text[] not null,
        platforms       text[] not null,
        categories      text[] not null,
        started_at      timestamptz not null,
        ended_at        timestamptz,
        duration_secs   bigint,
        peak_viewers    bigint,
        avg_viewers     double precision,
        total_messages  bigint,
        unique_chatters bigint,
        new_followers   bigint,
        figures         jsonb
      );
      create index stream_sessions_started on stream_sessions (account_id, started_at desc, id);
      create index stream_sessions_live on stream_sessions (account_id) where is_live;

      create table session_streams (
        session_id          uuid not null,
        account_id          uuid not null,
        platform            text not null,
        platform_channel_id text not null,
        broadcast_id        text not null,
        title               text,
        category            text,
        started_at          timestamptz not null,
        primary key (session_id, platform, broadcast_id)
      );
      create index session_streams_account on session_streams (account_id);

      create table session_links (
        id            uuid primary key,
        session_id    uuid not null,
        account_id    uuid not null,
        token_hash    text not null unique,
        password_hash text,
        allow_export  boolean not null,
        created_by    uuid,
        created_at    timestamptz not null,
        expires_at    timestamptz not null,
        revoked_at    timestamptz
      );
      create index session_links_session on session_links (session_id);
      create index session_links_account on session_links (account_id);

      create table session_claims (
        account_id   uuid not null,
        platform     text not null,
        broadcast_id text not null,
        session_id   uuid not null,
        is_begun     boolean not null default false,
        primary key (account_id, platform, broadcast_id)
      );
      create index session_claims_session on session_claims (session_id);
      create index session_claims_open on session_claims (session_id) where not is_begun;

      create table live_session_figures (
        session_id      uuid primary key,
        account_id      uuid not null,
        counted_at      timestamptz not null,
        next_at         timestamptz not null,
        duration_secs   bigint not null,
        peak_viewers    bigint,
        avg_viewers     double precision,
        total_messages  bigint not null,
        unique_chatters bigint not null,
        new_followers   bigint,
        figures         jsonb not null
      );
      create index live_session_figures_next on live_session_figures (next_at)`),
};
