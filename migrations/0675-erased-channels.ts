import type { Migration } from './index';

/**
 * Keyed hashes of erased persons whose channels were crawled: the crawler reads them no more. The indexes serve the
 * ends of unread broadcasts and the retention of samples.
 */
export const erasedChannels: Migration = {
  name: '0675-erased-channels',
  up: (knex) =>
    knex.raw(`
      create table erased_channels (hash text primary key);
      create index crawled_streams_live on crawled_streams (platform) where ended_at is null;
      create index crawled_samples_age on crawled_samples (sampled_at)`),
};
