import type { Migration } from './index';

/**
 * The day's quota of YouTube's Data API, counted over all processes: one row per app and day (in Pacific time, in which
 * the quota restarts), and the remaining share of each connection (ingest/youtube/quota.ts).
 */
export const youtubeQuota: Migration = {
  name: '0155-youtube-quota',
  up: (knex) =>
    knex.raw(`
      create table youtube_quota (
        client_id text not null,
        day       date not null,
        used      bigint not null default 0,
        exhausted boolean not null default false,
        primary key (client_id, day)
      );
      create table youtube_quota_shares (
        client_id     text not null,
        connection_id text not null,
        allowance     double precision not null,
        at            timestamptz not null,
        primary key (client_id, connection_id)
      )`),
};
