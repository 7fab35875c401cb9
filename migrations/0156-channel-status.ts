import type { Migration } from './index';

/**
 * Broadcasts of an account's channels, a row per broadcast (projections/runtime/ledger/channel-turns.ts), and each
 * broadcast's newest figures (projections/history/stream-samples.ts). The broadcast '' means only that the channel was
 * offline at `ended_at`.
 */
export const channelStatus: Migration = {
  name: '0156-channel-status',
  up: (knex) =>
    knex.raw(`
      create table channel_status (
        account_id   uuid not null,
        platform     text not null,
        broadcast_id text not null,
        channel_id   text not null,
        is_online    boolean not null,
        stream_title text,
        category     text,
        live_chat_id text,
        started_at   timestamptz,
        ended_at     timestamptz,
        updated_at   timestamptz not null,
        primary key (account_id, platform, broadcast_id)
      );
      create index channel_status_online on channel_status (platform) where is_online;
      create table broadcast_figures (
        account_id     uuid not null,
        platform       text not null,
        broadcast_id   text not null,
        viewer_count   bigint not null,
        follower_count bigint,
        stream_title   text,
        category       text,
        tags           jsonb not null,
        sampled_at     timestamptz not null,
        primary key (account_id, platform, broadcast_id)
      )`),
};
