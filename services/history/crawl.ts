import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { ChannelCrawl, CrawlApp } from '../../vendors/crawl/port';
import { HttpFailed } from '../../vendors/http/port';
import type { HandleServices } from './channel-handles';
import { endUnknown, endUnread, keepChannel, keepProfile } from './crawled-rows';
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
/** Least time between two looks at the profile of a connected channel. */
const PROFILE_HOURS = 1;
/** Calls per platform and run where a vendor refuses some handles. */
const MOST_CALLS = 20;

/**
 * Reads the watched channels of the scope's platforms that were read longest ago, and profiles of connected ones.
 * Channels of an opt-out are not read.
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
      read += await readWatched(parts, platform, crawl, own_app);
      read += await readConnected(parts, platform, crawl, own_app);
      return true;
    },
  );
  await endUnread(db, [...unread]);
  singly.end();
  return read;
}

async function readWatched(parts: CrawlParts, platform: Platform, crawl: ChannelCrawl, app: CrawlApp) {
  const { db } = parts;
  const watched = await watchedChannels(db, platform, crawl.most * CALLS);
  let read = 0;
  for await (const { asked, found } of inParts(crawl.most, watched, (handles) => crawl.read(handles, app))) {
    const erased = await erasedChannels(parts, platform, found);
    for (const channel of found) {
      if (erased.has(channel.platform_channel_id)) continue;
      await keepChannel(parts, platform, channel);
      read += 1;
    }
    await endUnknown(db, platform, asked, found);
    await noteReads(db, platform, asked);
  }
  return read;
}

/** Reads profiles of connected channels, whose broadcasts their connections report. */
async function readConnected(parts: CrawlParts, platform: Platform, crawl: ChannelCrawl, app: CrawlApp) {
  const { db } = parts;
  const connected = await connectedChannels(db, platform, crawl.most);
  let read = 0;
  for await (const { asked, found } of inParts(crawl.most, connected, (ids) => crawl.profiles(ids, app))) {
    for (const profile of found) await keepProfile(parts, platform, profile);
    read += found.length;
    await noteReads(db, platform, asked.map(idAsHandle));
  }
  return read;
}

/** How the list of reads names a channel by its id. */
const ID = 'id:';
const idAsHandle = (id: string): string => ID + id;

const noteReads = (db: Queryable, platform: Platform, channels: readonly string[]): Promise<unknown> =>
  db.query(
    `insert into crawler_reads (platform, channel, read_at) select $1, unnest($2::text[]), now()
     on conflict (platform, channel) do update set read_at = excluded.read_at`,
    [platform, channels],
  );

/**
 * Asks in calls of `most` channels. A vendor refuses a call for one malformed handle, so that a refused call is
 * repeated in halves.
 */
async function* inParts<Found>(
  most: number,
  channels: readonly string[],
  ask: (channels: readonly string[]) => Promise<Found[] | null>,
): AsyncGenerator<{ asked: string[]; found: Found[] }> {
  const waiting: string[][] = [];
  for (let at = 0; at < channels.length; at += most) waiting.push(channels.slice(at, at + most));
  for (let calls = 0; calls < MOST_CALLS; calls += 1) {
    const asked = waiting.shift();
    if (asked === undefined) return;
    try {
      const found = await ask(asked);
      if (found === null) return;
      yield { asked, found };
    } catch (error) {
      if (!(error instanceof HttpFailed && REFUSALS.includes(error.status))) throw error;
      const half = asked.length >> 1;
      if (half > 0) waiting.unshift(asked.slice(0, half), asked.slice(half));
      else yield { asked, found: [] };
    }
  }
}

/** Connected channels whose profiles are due, those read longest ago first. */
async function connectedChannels(db: Queryable, platform: Platform, most: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select n.platform_channel_id as id
     from (select distinct platform, platform_channel_id from channel_connections where platform = $1) n
       left join crawler_reads r on r.platform = n.platform and r.channel = $2 || n.platform_channel_id
     where (r.read_at is null or r.read_at < now() - interval '${PROFILE_HOURS} hours')
       and not exists (select from crawler_opt_outs o
         where o.platform = n.platform and o.channel = n.platform_channel_id)
     order by r.read_at nulls first, n.platform_channel_id limit $3`,
    [platform, ID, most],
  );
  return rows.map(({ id }) => id);
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
