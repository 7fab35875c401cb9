import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import { plainChannel } from '../../domain/history/crawler';
import { broadcastIdOf } from '../../domain/history/channel-status';
import type { Queryable } from '../../engines/postgres/port';
import { parseInstant } from '../../lib/time/instants';
import type { ChannelCrawl, CrawlApp, ShownBroadcast, ShownChannel } from '../../vendors/crawl/port';
import { HttpFailed } from '../../vendors/http/port';
import { writeChannelName } from '../connections/channel-names';
import { type HandleServices, writeHandle } from './channel-handles';
import { Singly } from './singly';

export interface CrawlParts extends HandleServices {
  crawls: Readonly<Partial<Record<Platform, ChannelCrawl>>>;
  /** The installation's app; null without one. */
  app(platform: Platform): Promise<CrawlApp | null>;
}

/** Statuses by which vendors refuse handles. */
const REFUSALS: readonly number[] = [400, 404, 422];
/** Full calls per platform and run: connected channels leave far more. */
const CALLS = 2;
/** Calls per platform and run where a vendor refuses some handles. */
const MOST_CALLS = 20;

/**
 * Reads the watched channels of the scope's platforms that were read longest ago. Channels of an opt-out are not read.
 * A failing platform delays no other.
 * @returns the number of channels read
 */
export async function crawlChannels(parts: CrawlParts, signal: AbortSignal): Promise<number> {
  const { db, crawls, app } = parts;
  const [scope] = await db.query<{ platforms: string[] }>('select platforms from crawler_scope where enabled');
  const platforms = PLATFORMS.filter((name) => scope?.platforms.includes(name) === true);
  const singly = new Singly();
  let read = 0;
  await singly.each(
    platforms,
    () => signal.aborted,
    async (platform) => {
      const crawl = crawls[platform];
      const own_app = crawl === undefined ? null : await app(platform);
      if (crawl === undefined || own_app === null) return false;
      const watched = await watchedChannels(db, platform, crawl.most * CALLS);
      for await (const { handles, channels } of readInParts(crawl, watched, own_app)) {
        for (const channel of channels) {
          await keepChannel(parts, platform, channel);
          read += 1;
        }
        await endUnknown(db, platform, handles, channels);
        await db.query(
          `insert into crawler_reads (platform, channel, read_at) select $1, unnest($2::text[]), now()
           on conflict (platform, channel) do update set read_at = excluded.read_at`,
          [platform, handles],
        );
      }
      return true;
    },
  );
  singly.end();
  return read;
}

/**
 * Reads channels in calls of as many handles as the platform allows. A vendor refuses a call for one malformed handle,
 * so that a refused call is repeated in halves.
 */
async function* readInParts(
  crawl: ChannelCrawl,
  watched: readonly string[],
  app: CrawlApp,
): AsyncGenerator<{ handles: string[]; channels: ShownChannel[] }> {
  const waiting: string[][] = [];
  for (let at = 0; at < watched.length; at += crawl.most) waiting.push(watched.slice(at, at + crawl.most));
  for (let calls = 0; calls < MOST_CALLS; calls += 1) {
    const handles = waiting.shift();
    if (handles === undefined) return;
    try {
      yield { handles, channels: await crawl.read(handles, app) };
    } catch (error) {
      if (!(error instanceof HttpFailed && REFUSALS.includes(error.status))) throw error;
      const half = handles.length >> 1;
      if (half > 0) waiting.unshift(handles.slice(0, half), handles.slice(half));
      else yield { handles, channels: [] };
    }
  }
}

/** Ends the broadcasts of channels whose handle the platform does not know any more. */
const endUnknown = (
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

async function watchedChannels(db: Queryable, platform: Platform, most: number): Promise<string[]> {
  const rows = await db.query<{ channel: string }>(
    `select w.channel from crawler_watchlist w left join crawler_reads r using (platform, channel)
     where w.platform = $1 and not exists (select from crawler_opt_outs o where o.platform = w.platform
       and (o.channel = w.channel or o.channel in (select c.platform_channel_id from crawled_channels c
         where c.platform = w.platform and c.channel = w.channel)))
     order by r.read_at nulls first, w.channel limit $2`,
    [platform, most],
  );
  return rows.map(({ channel }) => channel);
}

async function keepChannel(parts: CrawlParts, platform: Platform, channel: ShownChannel): Promise<void> {
  const { platform_channel_id, handle, display_name, bio, broadcaster_type, broadcast } = channel;
  await writeHandle(parts, { platform, platform_channel_id }, handle);
  await writeChannelName(parts, { platform, platform_channel_id }, display_name);
  await parts.db.transaction(async (tx) => {
    const [before] = await tx.query<{ bio: string | null }>(
      'select bio from crawled_channels where platform = $1 and platform_channel_id = $2 for update',
      [platform, platform_channel_id],
    );
    await tx.query(
      `insert into crawled_channels (platform, platform_channel_id, channel, bio, broadcaster_type, read_at)
       values ($1, $2, $3, $4, $5, now()) on conflict (platform, platform_channel_id) do update
         set channel = excluded.channel, bio = coalesce(excluded.bio, crawled_channels.bio), broadcaster_type = excluded.broadcaster_type,
           read_at = excluded.read_at`,
      [platform, platform_channel_id, plainChannel(handle), bio, broadcaster_type],
    );
    if (before !== undefined && bio !== null && before.bio !== bio)
      await tx.query(
        `insert into crawled_profile_changes
           (platform, platform_channel_id, change_type, old_value, new_value, changed_at)
         values ($1, $2, 'bio', to_jsonb($3::text), to_jsonb($4::text), now())`,
        [platform, platform_channel_id, before.bio, bio],
      );
    await keepBroadcast(tx, { platform, platform_channel_id }, broadcast);
  });
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
