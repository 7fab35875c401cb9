import type { Migration } from './index';

/**
 * Public statistics: read models of finished streams by channel, and the handles of channels. A handle is found by its
 * keyed hash, and its text is sealed under the channel's person. `public_channels` holds changed publicness alone.
 */
export const publicStats: Migration = {
  name: '0393-public-stats',
  up: (knex) =>
    knex.raw(`
      create table channel_handles (
        platform            text not null,
        platform_channel_id text not null,
        handle_hash         text not null,
        key_id              uuid not null,
        sealed              text not null,
        updated_at          timestamptz not null default clock_timestamp(),
        primary key (platform, platform_channel_id),
        unique (platform, handle_hash)
      );

      create table public_channels (
        account_id          uuid not null,
        platform            text not null,
        platform_channel_id text not null,
        is_public           boolean not null,
        show_top_chatters   boolean not null,
        opted_out_via       text,
        updated_at          timestamptz not null,
        primary key (account_id, platform, platform_channel_id)
      );
      create index public_channels_channel on public_channels (platform, platform_channel_id);

      create table public_streams (
        account_id          uuid not null,
        platform            text not null,
        broadcast_id        text not null,
        platform_channel_id text not null,
        session_id          uuid not null,
        started_at          timestamptz not null,
        ended_at            timestamptz not null,
        duration_secs       bigint not null,
        peak_viewers        bigint,
        avg_viewers         double precision,
        total_messages      bigint not null,
        follower_count      bigint,
        title               text,
        category            text,
        figures             jsonb not null,
        primary key (platform, broadcast_id, account_id)
      );
      create index public_streams_channel on public_streams (platform, platform_channel_id, started_at desc);
      create index public_streams_session on public_streams (session_id);
      create index public_streams_account on public_streams (account_id);

      create table public_stream_categories (
        platform            text not null,
        broadcast_id        text not null,
        account_id          uuid not null,
        platform_channel_id text not null,
        session_id          uuid not null,
        started_at          timestamptz not null,
        category            text not null,
        duration_secs       bigint not null,
        avg_viewers         double precision not null,
        primary key (platform, broadcast_id, account_id, category)
      );
      create index public_stream_categories_started on public_stream_categories (started_at);
      create index public_stream_categories_session on public_stream_categories (session_id);
      create index public_stream_categories_account on public_stream_categories (account_id);

      create table public_stream_emotes (
        platform            text not null,
        broadcast_id        text not null,
        account_id          uuid not null,
        platform_channel_id text not null,
        session_id          uuid not null,
        started_at          timestamptz not null,
        provider            text not null,
        id                  text not null,
        name                text not null,
        url                 text,
        count               bigint not null,
        primary key (platform, broadcast_id, account_id, provider, id)
      );
      create index public_stream_emotes_started on public_stream_emotes (started_at);
      create index public_stream_emotes_session on public_stream_emotes (session_id);
      create index public_stream_emotes_account on public_stream_emotes (account_id);

      create table public_channel_stats (
        platform            text not null,
        platform_channel_id text not null,
        stream_count        bigint not null,
        total_duration_secs bigint not null,
        peak_viewers        bigint,
        avg_viewers         double precision,
        total_messages      bigint not null,
        last_streamed_at    timestamptz not null,
        primary key (platform, platform_channel_id)
      );

      create index session_claims_broadcast on session_claims (platform, broadcast_id)`),
};
