import type { Migration } from './index';

/** `paused_at`: since then a worker receives Twitch channels over sockets alone, and no shard is connected. */
export const twitchConduitPause: Migration = {
  name: '0370-twitch-conduit-pause',
  up: (knex) => knex.raw('alter table twitch_conduits add column paused_at timestamptz'),
};
