import { type Channel, writeChannelName } from '../access/channel-names';
import type { Database } from '../engines/postgres/port';
import type { PersonalTexts } from '../engines/subject-keys/port';

/**
 * Seals the names of channels that the build before keeps in clear in its read model, and empties its column. It bears
 * being cut off, and being done again. Returns how many there were.
 */
export async function adoptChannelNames({ db, texts }: { db: Database; texts: PersonalTexts }): Promise<number> {
  const rows = await db.query<Channel & { channel_name: string } & Record<string, unknown>>(
    `select distinct on (platform, platform_channel_id) platform, platform_channel_id, channel_name
     from channel_connections where channel_name is not null order by platform, platform_channel_id, connected_at desc`,
  );
  for (const { channel_name, ...channel } of rows) {
    await writeChannelName({ db, texts }, channel, channel_name);
    await db.query(
      'update channel_connections set channel_name = null where platform = $1 and platform_channel_id = $2',
      [channel.platform, channel.platform_channel_id],
    );
  }
  return rows.length;
}
