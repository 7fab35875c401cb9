import type { Platform } from '../../domain/common/vendors';
import { plainChannel } from '../../domain/history/crawler';
import { broadcastIdOf } from '../../domain/history/channel-status';
import type { Queryable } from '../../engines/postgres/port';
import { parseInstant } from '../../lib/time/instants';
import type { ShownBroadcast, ShownChannel, ShownProfile } from '../../vendors/crawl/port';
import { writeChannelName } from '../connections/channel-names';
import { type HandleServices, writeHandle } from './channel-handles';
import { erasedChannels } from './erased-channels';

/** Time without a look after which a broadcast counts as ended: the longest watchlist is read in less. */
const UNSEEN_HOURS = 6;

/** Ends the broadcasts of channels that are read no more: of these platforms, and of channels that nobody watches. */
export const endUnread = (db: Queryable, platforms: readonly Platform[]): Promise<unknown> =>
  db.query(
    `update crawled_streams s set ended_at = last_seen_at where s.ended_at is null and (
       s.platform = any($1::text[]) or s.last_seen_at < now() - interval '${UNSEEN_HOURS} hours'
       or not exists (select from crawled_channels c join crawler_watchlist w using (platform, channel)
         where c.platform = s.platform and c.platform_channel_id = s.platform_channel_id))`,
    [platforms],
    'crawled-streams-unread',
  );

/** Ends the broadcasts of channels whose handle the platform does not know any more. */
export const endUnknown = (
  db: Queryable,
  platform: Platform,
  handles: readonly string[],
  channels: readonly ShownChannel[],
): Promise<unknown> =>
  db.query(
    `update crawled_streams s set ended_at = last_seen_at from crawled_channels c
     where s.platform = $1 and s.ended_at is null and c.platform = s.platform
       and c.platform_channel_id = s.platform_channel_id and c.channel = any($2::text[])
       and c.platform_channel_id <> all($3::text[])`,
    [platform, handles, channels.map(({ platform_channel_id }) => platform_channel_id)],
    'crawled-streams-end',
  );

/** Stores what a watched channel's platform shows of it; of an erased person nothing. */
export async function keepChannel(parts: HandleServices, platform: Platform, channel: ShownChannel): Promise<void> {
  const { platform_channel_id, handle, display_name, broadcast } = channel;
  await writeHandle(parts, { platform, platform_channel_id }, handle);
  await writeChannelName(parts, { platform, platform_channel_id }, display_name);
  await parts.db.transaction(async (tx) => {
    if (!(await storeProfile(parts, tx, { platform, handle: plainChannel(handle) }, channel))) return;
    await keepBroadcast(tx, { platform, platform_channel_id }, broadcast);
  });
}

/** Stores a connected channel's profile; of an erased person nothing. */
export const keepProfile = (parts: HandleServices, platform: Platform, profile: ShownProfile): Promise<unknown> =>
  parts.db.transaction((tx) => storeProfile(parts, tx, { platform, handle: null }, profile));

/** @returns false for an erased person */
async function storeProfile(
  { hashes }: HandleServices,
  tx: Queryable,
  { platform, handle }: { platform: Platform; handle: string | null },
  profile: ShownProfile,
): Promise<boolean> {
  const { platform_channel_id, bio, broadcaster_type } = profile;
  const [before] = await tx.query<{ bio: string | null }>(
    'select bio from crawled_channels where platform = $1 and platform_channel_id = $2 for update',
    [platform, platform_channel_id],
  );
  // An erasure marks the channel before it waits for the row above.
  if ((await erasedChannels({ db: tx, hashes }, platform, [profile])).size > 0) return false;
  await tx.query(
    `insert into crawled_channels (platform, platform_channel_id, channel, bio, broadcaster_type, read_at)
     values ($1, $2, coalesce($3::text, ''), $4, $5, now()) on conflict (platform, platform_channel_id) do update
       set channel = coalesce($3::text, crawled_channels.channel),
         bio = coalesce(excluded.bio, crawled_channels.bio), broadcaster_type = excluded.broadcaster_type,
         read_at = excluded.read_at`,
    [platform, platform_channel_id, handle, bio, broadcaster_type],
  );
  const is_changed = before !== undefined && before.bio !== null && bio !== null && before.bio !== bio;
  if (is_changed)
    await tx.query(
      `insert into crawled_profile_changes
         (platform, platform_channel_id, change_type, old_value, new_value, changed_at)
       values ($1, $2, 'bio', to_jsonb($3::text), to_jsonb($4::text), now())`,
      [platform, platform_channel_id, before.bio, bio],
    );
  return true;
}

async function keepBroadcast(
  tx: Queryable,
  { platform, platform_channel_id }: { platform: Platform; platform_channel_id: string },
  broadcast: ShownBroadcast | null,
): Promise<void> {
  const started_at = parseInstant(broadcast?.started_at ?? '');
  const broadcast_id = broadcast?.broadcast_id ?? broadcastIdOf(platform_channel_id, started_at);
  await tx.query(
    `update crawled_streams set ended_at = last_seen_at
     where platform = $1 and platform_channel_id = $2 and ended_at is null and broadcast_id is distinct from $3`,
    [platform, platform_channel_id, broadcast_id],
  );
  if (broadcast === null || broadcast_id === null || started_at === null) return;
  const { title, category, viewer_count } = broadcast;
  const sampled = await tx.query(
    `insert into crawled_samples (platform, platform_channel_id, broadcast_id, sampled_at, viewer_count)
     values ($1, $2, $3, date_trunc('minute', now()), $4) on conflict do nothing returning 1 as one`,
    [platform, platform_channel_id, broadcast_id, viewer_count],
  );
  // A second read within a minute counts once.
  if (sampled.length === 0) return;
  await tx.query(
    `insert into crawled_streams as s (platform, platform_channel_id, broadcast_id, title, category, started_at,
       last_seen_at, samples, viewers, peak_viewers) values ($1, $2, $3, $4, $5, $6, now(), 1, $7, $7)
     on conflict (platform, broadcast_id) do update set title = coalesce(excluded.title, s.title),
       category = coalesce(excluded.category, s.category), last_seen_at = excluded.last_seen_at, ended_at = null,
       samples = s.samples + 1, viewers = s.viewers + excluded.viewers,
       peak_viewers = greatest(s.peak_viewers, excluded.peak_viewers)`,
    [platform, platform_channel_id, broadcast_id, title, category, started_at, viewer_count],
  );
}

/** Days for which each sample is kept; of older ones the first of each hour stays. */
const MINUTES_DAYS = 30;
/** Days of the longest trends. */
const SAMPLE_DAYS = 366;
/** Days without a look after which the rows of a channel that nobody watches or has connected are deleted. */
const UNWATCHED_DAYS = 30;
/** Rows per statement. */
const TOGETHER = 1000;

const THIN_OUT = `
  delete from crawled_samples s using (
    select ctid from crawled_samples o
    where o.sampled_at < now() - interval '${SAMPLE_DAYS} days'
      or (o.sampled_at < now() - interval '${MINUTES_DAYS} days' and exists (select from crawled_samples e
        where e.platform = o.platform and e.broadcast_id = o.broadcast_id
          and e.sampled_at >= date_trunc('hour', o.sampled_at, 'UTC') and e.sampled_at < o.sampled_at))
    limit ${TOGETHER}) old
  where s.ctid = old.ctid returning 1 as one`;
const UNWATCHED = `
  select platform, platform_channel_id from crawled_channels c
  where read_at < now() - interval '${UNWATCHED_DAYS} days'
    and not exists (select from crawler_watchlist w where w.platform = c.platform and w.channel = c.channel)
    and not exists (select from channel_connections n
      where n.platform = c.platform and n.platform_channel_id = c.platform_channel_id)
  limit ${TOGETHER}`;
/** The channel itself last, so that a stopped deletion is repeated. */
const ROWS = ['crawled_samples', 'crawled_streams', 'crawled_profile_changes', 'crawled_channels'] as const;

/** Deletes expired samples, and what was read of channels that are read no more. Returns the number of rows. */
export async function sweepCrawled(db: Queryable, signal?: AbortSignal): Promise<number> {
  let all = 0;
  for (let some = TOGETHER; some === TOGETHER && !signal?.aborted; all += some)
    some = (await db.query(THIN_OUT, [], 'crawled-samples-old')).length;
  for (let some = TOGETHER; some === TOGETHER && !signal?.aborted;) {
    const channels = await db.query<{ platform: string; platform_channel_id: string }>(UNWATCHED);
    const values = [channels.map(({ platform }) => platform), channels.map((one) => one.platform_channel_id)];
    for (const table of channels.length === 0 ? [] : ROWS) {
      const gone = await db.query(
        `delete from ${table} where (platform, platform_channel_id) in (select unnest($1::text[]), unnest($2::text[]))
         returning 1 as one`,
        values,
      );
      all += gone.length;
    }
    some = channels.length;
  }
  const reads = await db.query(
    `delete from crawler_reads where read_at < now() - interval '${UNWATCHED_DAYS} days' returning 1 as one`,
  );
  return all + reads.length;
}
