import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { ChannelCrawl, CrawlApp, ShownChannel } from '../../vendors/crawl/port';
import { HttpFailed } from '../../vendors/http/port';
import type { HandleServices } from './channel-handles';
import { endUnknown, endUnread, keepChannel } from './crawled-rows';
import { erasedChannels } from './erased-channels';
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
  const unread = new Set<Platform>(PLATFORMS.filter((name) => !platforms.includes(name)));
  let read = 0;
  await singly.each(
    platforms,
    () => signal.aborted,
    async (platform) => {
      const crawl = crawls[platform];
      const own_app = crawl === undefined ? null : await app(platform);
      if (crawl === undefined || own_app === null) {
        unread.add(platform);
        return false;
      }
      const watched = await watchedChannels(db, platform, crawl.most * CALLS);
      for await (const { handles, channels } of readInParts(crawl, watched, own_app)) {
        const erased = await erasedChannels(parts, platform, channels);
        for (const channel of channels) {
          if (erased.has(channel.platform_channel_id)) continue;
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
  await endUnread(db, [...unread]);
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
