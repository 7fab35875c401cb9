import type { Eraser } from '../../kernel/eraser';

const TABLES = [
  'crawled_profile_changes',
  'crawled_samples',
  'crawled_streams',
  'opted_out_handles',
  'crawled_channels',
] as const;

/** Deletes what the crawler has read of a person's channel. */
export const crawledChannelsEraser: Eraser = {
  tables: [...TABLES],
  async names({ kind, id }, { db }) {
    const found = await db.query(
      'select 1 as one from crawled_channels where platform = $1 and platform_channel_id = $2',
      [kind, id],
    );
    return found.length > 0;
  },
  async erase({ kind, id }, { db }) {
    let gone = 0;
    for (const table of TABLES) {
      const rows = await db.query(
        `delete from ${table} where platform = $1 and platform_channel_id = $2 returning 1 as one`,
        [kind, id],
      );
      gone += rows.length;
    }
    return gone > 0 ? `${gone} rows of a crawled channel erased` : null;
  },
};
