import type { Migration } from './index';

/** Public pages find the live streams of a channel. */
export const sessionChannels: Migration = {
  name: '0457-session-channels',
  up: (knex) => knex.raw(`create index session_streams_channel on session_streams (platform, platform_channel_id)`),
};
