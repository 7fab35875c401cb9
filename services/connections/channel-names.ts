import type { ChannelPlatform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonalTexts, SealedText } from '../../privacy/subject-keys/port';

export interface Channel {
  platform: ChannelPlatform;
  /** The channel's id there. */
  platform_channel_id: string;
}

interface ChannelNames {
  db: Queryable;
  texts: PersonalTexts;
}

/** A channel is a person at its platform: its name is sealed under that person's key and erased with it. */
const subjectOf = ({ platform, platform_channel_id }: Channel): string => `${platform}:${platform_channel_id}`;
const contextOf = (channel: Channel): string => `channel-name ${subjectOf(channel)}`;

/** Replaces the stored name of a channel; no event carries it (domain/connections/connections.ts). */
export async function writeChannelName({ db, texts }: ChannelNames, channel: Channel, name: string): Promise<void> {
  const { key_id, sealed } = await texts.seal(subjectOf(channel), name, contextOf(channel));
  await db.query(
    `insert into channel_names (platform, platform_channel_id, key_id, sealed) values ($1, $2, $3, $4)
     on conflict (platform, platform_channel_id) do update
       set key_id = excluded.key_id, sealed = excluded.sealed, updated_at = clock_timestamp()`,
    [channel.platform, channel.platform_channel_id, key_id, sealed],
  );
}

/** Null where no name is known, or the person was erased. */
export async function readChannelName({ db, texts }: ChannelNames, channel: Channel): Promise<string | null> {
  const [row] = await db.query<SealedText & Record<string, unknown>>(
    'select key_id, sealed from channel_names where platform = $1 and platform_channel_id = $2',
    [channel.platform, channel.platform_channel_id],
  );
  return row === undefined ? null : texts.open(row, contextOf(channel));
}
