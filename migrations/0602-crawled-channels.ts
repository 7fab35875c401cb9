import type { Migration } from './index';

/**
 * Channels that the crawler has read, their broadcasts and samples, and changes of their profiles. They belong to the
 * installation, not to an account. `crawler_reads` holds when each watched handle was read, `opted_out_handles` which
 * channel an opt-out by its handle concerns.
 */
export const crawledChannels: Migration = {
  name: '0602-crawled-channels',
  up: (knex) =>
    knex.raw(`
      create table crawler_reads (
        platform text not null,
        channel  text not null,
        read_at  timestamptz not null,
        primary key (platform, channel)
      );
      create table crawled_channels (
        platform            text not null,
        platform_channel_id text not null,
        channel             text not null,
        bio                 text,
        broadcaster_type    text,
        read_at             timestamptz not null,
        primary key (platform, platform_channel_id)
      );
      create index crawled_channels_channel on crawled_channels (platform, channel);
      create table crawled_streams (
        platform            text not null,
        platform_channel_id text not null,
        broadcast_id        text not null,
        title               text,
        category            text,
        started_at          timestamptz not null,
        last_seen_at        timestamptz not null,
        ended_at            timestamptz,
        samples             bigint not null,
        viewers             bigint not null,
        peak_viewers        bigint not null,
        primary key (platform, broadcast_id)
      );
      create index crawled_streams_channel on crawled_streams (platform, platform_channel_id, started_at desc);
      create table crawled_samples (
        platform            text not null,
        platform_channel_id text not null,
        broadcast_id        text not null,
        sampled_at          timestamptz not null,
        viewer_count        bigint not null,
        primary key (platform, broadcast_id, sampled_at)
      );
      create table crawled_profile_changes (
        id                  bigint generated always as identity primary key,
        platform            text not null,
        platform_channel_id text not null,
        change_type         text not null,
        old_value           jsonb,
        new_value           jsonb,
        changed_at          timestamptz not null
      );
      create index crawled_profile_changes_channel
        on crawled_profile_changes (platform, platform_channel_id, changed_at desc);
      create table opted_out_handles (
        platform            text not null,
        platform_channel_id text not null,
        channel             text not null,
        primary key (platform, platform_channel_id)
      )`),
};
