import { type Channel, writeChannelName } from '../access/channel-names';
import type { Database } from '../engines/postgres/port';
import type { PersonalTexts } from '../engines/subject-keys/port';

/**
 * Seals the names of channels that the build before keeps in clear in its read model, and empties its column. It bears
 * being cut off, and being done again or by two nodes at once: who comes later must not write an older name over one
 * that came meanwhile. Returns how many there were.
 */
export async function adoptChannelNames({ db, texts }: { db: Database; texts: PersonalTexts }): Promise<number> {
  const rows = await db.query<Channel & { channel_name: string } & Record<string, unknown>>(
    `select distinct on (platform, platform_channel_id) platform, platform_channel_id, channel_name
     from channel_connections where channel_name is not null order by platform, platform_channel_id, connected_at desc`,
  );
  let adopted = 0;
  for (const { channel_name, ...channel } of rows) {
    adopted += await db.transaction(async (tx) => {
      // One of two nodes that start together: the other waits here, and finds nothing left.
      const taken = await tx.query(
        `update channel_connections set channel_name = null
         where platform = $1 and platform_channel_id = $2 and channel_name is not null returning 1 as one`,
        [channel.platform, channel.platform_channel_id],
      );
      if (taken.length > 0) await writeChannelName({ db: tx, texts }, channel, channel_name);
      return Math.min(1, taken.length);
    });
  }
  return adopted;
}
