import type { Eraser } from '../../kernel/eraser';

const TABLES = [
  'crawled_profile_changes',
  'crawled_samples',
  'crawled_streams',
  'opted_out_handles',
  'crawled_channels',
] as const;

/** Deletes what the crawler has read of a person's channel, and keeps it from reading the channel again. */
export const crawledChannelsEraser: Eraser = {
  tables: [...TABLES],
  async names({ kind, id }, { db }) {
    const found = await db.query(
      'select 1 as one from crawled_channels where platform = $1 and platform_channel_id = $2',
      [kind, id],
    );
    return found.length > 0;
  },
  async erase({ subject, kind, id }, { db, subject_keys }) {
    const channel = 'select from crawled_channels where platform = $1 and platform_channel_id = $2';
    const [hash] = (await subject_keys.hashesOf([subject])).values();
    await db.query(`insert into erased_channels (hash) select $3 where exists (${channel}) on conflict do nothing`, [
      ...[kind, id, hash],
    ]);
    // A read that began before holds the row until it has written.
    await db.query(`${channel} for update`, [kind, id]);
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
