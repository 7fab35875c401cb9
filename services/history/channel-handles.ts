import type { ChannelPlatform, Platform } from '../../domain/common/vendors';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { PersonalTexts, SealedText, SubjectKeys } from '../../privacy/subject-keys/port';

export interface HandleServices {
  db: Database;
  texts: PersonalTexts;
  /** Keyed hashes, by which sealed names are found. */
  hashes: Pick<SubjectKeys, 'hashesOf'>;
}

interface Channel {
  platform: Platform | ChannelPlatform;
  platform_channel_id: string;
}

const contextOf = ({ platform, platform_channel_id }: Channel): string =>
  `channel-handle ${platform}:${platform_channel_id}`;

/** A handle as it is compared: without `@`, whatever its case. */
const plain = (handle: string): string => handle.trim().replace(/^@/, '').toLowerCase();

async function hashOf({ hashes }: Pick<HandleServices, 'hashes'>, platform: string, handle: string): Promise<string> {
  // No subject of a person begins so: a platform has no slash.
  const name = `channel/handle:${platform}:${plain(handle)}`;
  return (await hashes.hashesOf([name])).get(name)!;
}

/** Stores the handle of a channel. A handle that another channel had leads there no more. */
export async function writeHandle(services: HandleServices, channel: Channel, handle: string): Promise<void> {
  const { platform, platform_channel_id } = channel;
  const hash = await hashOf(services, platform, handle);
  const subject = `${platform}:${platform_channel_id}`;
  const { key_id, sealed } = await services.texts.seal(subject, handle.trim().replace(/^@/, ''), contextOf(channel));
  await services.db.transaction(async (tx) => {
    await tx.query('delete from channel_handles where platform = $1 and handle_hash = $2', [platform, hash]);
    await tx.query(
      `insert into channel_handles (platform, platform_channel_id, handle_hash, key_id, sealed)
       values ($1, $2, $3, $4, $5)
       on conflict (platform, platform_channel_id) do update set handle_hash = excluded.handle_hash,
         key_id = excluded.key_id, sealed = excluded.sealed, updated_at = clock_timestamp()`,
      [platform, platform_channel_id, hash, key_id, sealed],
    );
    await tx.query(
      `insert into opted_out_handles (platform, platform_channel_id, channel)
       select platform, $2, channel from crawler_opt_outs where platform = $1 and channel = $3
       on conflict (platform, platform_channel_id) do update set channel = excluded.channel`,
      [platform, platform_channel_id, plain(handle)],
    );
  });
}

/** The channel that has the handle; null where none has. */
export async function channelOfHandle(
  services: Pick<HandleServices, 'db' | 'hashes'>,
  platform: Platform,
  handle: string,
): Promise<string | null> {
  const [row] = await services.db.query<{ platform_channel_id: string }>(
    'select platform_channel_id from channel_handles where platform = $1 and handle_hash = $2',
    [platform, await hashOf(services, platform, handle)],
    'channel-of-handle',
  );
  return row?.platform_channel_id ?? null;
}

/** Handles of channels, in their order; null where none is known, or its person was erased. */
export async function handlesOf(
  { db, texts }: { db: Queryable; texts: PersonalTexts },
  channels: readonly Channel[],
): Promise<(string | null)[]> {
  if (channels.length === 0) return [];
  const rows = await db.query<Channel & SealedText & Record<string, unknown>>(
    `select platform, platform_channel_id, key_id, sealed from channel_handles
     where (platform, platform_channel_id) in (select unnest($1::text[]), unnest($2::text[]))`,
    [channels.map(({ platform }) => platform), channels.map((one) => one.platform_channel_id)],
    'channel-handles',
  );
  const opened = await texts.openAll(rows.map((row) => ({ ...row, context: contextOf(row) })));
  const known = new Map(rows.map((row, at) => [contextOf(row), opened[at]!]));
  return channels.map((channel) => known.get(contextOf(channel)) ?? null);
}
