import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { HandleServices } from './channel-handles';

/** Ids of those among the channels whose persons were erased. */
export async function erasedChannels(
  { db, hashes }: { db: Queryable } & Pick<HandleServices, 'hashes'>,
  platform: Platform,
  channels: readonly { platform_channel_id: string }[],
): Promise<Set<string>> {
  const ids = channels.map(({ platform_channel_id }) => platform_channel_id);
  const of = await hashes.hashesOf(ids.map((id) => `${platform}:${id}`));
  const rows = await db.query<{ hash: string }>('select hash from erased_channels where hash = any($1::text[])', [
    [...of.values()],
  ]);
  const erased = new Set(rows.map(({ hash }) => hash));
  return new Set(ids.filter((id) => erased.has(of.get(`${platform}:${id}`)!)));
}
