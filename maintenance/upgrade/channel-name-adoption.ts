import { type Channel, writeChannelName } from '../../services/connections/channel-names';
import type { Database } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';

/**
 * Seals names of channels that an older release stores unencrypted in its read model, and clears that column.
 * Repeatable after an interruption and safe on two nodes at once: the later one must not replace a newer name with an
 * older one. Returns the number adopted.
 */
export async function adoptChannelNames({ db, texts }: { db: Database; texts: PersonalTexts }): Promise<number> {
  const rows = await db.query<Channel & { channel_name: string } & Record<string, unknown>>(
    `select distinct on (platform, platform_channel_id) platform, platform_channel_id, channel_name
     from channel_connections where channel_name is not null order by platform, platform_channel_id, connected_at desc`,
  );
  let adopted = 0;
  for (const { channel_name, ...channel } of rows) {
    adopted += await db.transaction(async (tx) => {
      // The second of two nodes waits here and finds nothing left.
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
