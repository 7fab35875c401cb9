import { z } from 'zod';
import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { Parameters } from '../../kernel/sql';
import { channelClosed } from './channel-owners';
import { crawledOpen } from './crawled-channels';
import { TopImage } from './stream-sessions';

const dateTime = z.string().meta({ format: 'date-time' });
/** Days that the directories look back. */
const DAYS = 30;

export const BROWSE_SORTS = ['last_streamed_at', 'hours_watched', 'peak_viewers', 'stream_count'] as const;
export const GAME_SORTS = ['hours_watched', 'peak_viewers', 'stream_count', 'channel_count'] as const;
export const EMOTE_SORTS = ['count', 'channel_count'] as const;

const figures = {
  hours_watched: z.number().nullable(),
  peak_viewers: z.int().nullable(),
  stream_count: z.int(),
};

export const BrowsedChannel = z
  .object({
    platform: z.string(),
    channel_handle: z.string(),
    channel_display_name: z.string().nullable(),
    source: z.enum(['first_party', 'external_crawler']),
    is_live: z.boolean(),
    last_streamed_at: dateTime,
    ...figures,
  })
  .meta({ id: 'PublicBrowsedChannel' });
type ChannelRow = Omit<z.output<typeof BrowsedChannel>, 'channel_handle' | 'channel_display_name' | 'platform'> & {
  platform: Platform;
  platform_channel_id: string;
};

export const PublicGame = z
  .object({ category: z.string(), ...figures, channel_count: z.int() })
  .meta({ id: 'PublicGame' });
export const PublicEmote = TopImage.extend({ channel_count: z.int() }).meta({ id: 'PublicEmote' });

export interface Directory<Sort extends string> {
  platform: Platform | null;
  sort_by: Sort;
  sort_dir: 'asc' | 'desc';
}
interface Page {
  limit: number;
  offset: number;
}

/** Rows of public channels in the last 30 days; of a stream that two accounts count one account's. */
function recent(p: Parameters, table: string, of: Platform | null): string {
  const only = of === null ? '' : `and d.platform = ${p.add(of)}`;
  return `(select d.* from ${table} d where d.started_at > now() - interval '${DAYS} days' ${only}
     and not ${channelClosed('d')} and not exists (select from ${table} o where o.platform = d.platform
       and o.broadcast_id = d.broadcast_id and o.account_id < d.account_id)) counted`;
}

/** Streams `s` of open crawled channels in the last 30 days; `only` is the parameter of a platform, or of null. */
const crawled = (only: string): string => `crawled_streams s
    where s.started_at > now() - interval '${DAYS} days' and ${crawledOpen('s')}
      and (${only}::text is null or s.platform = ${only})`;
const CRAWLED_VIEWER_SECS =
  '(s.viewers::numeric / s.samples * greatest(0, extract(epoch from s.last_seen_at - s.started_at)))';

/** Public channels with a handle. */
export function browsedChannels(
  db: Queryable,
  directory: Directory<(typeof BROWSE_SORTS)[number]>,
  page: Page,
): Promise<{ items: ChannelRow[]; total: number }> {
  const p = new Parameters();
  const only = p.add(directory.platform);
  const rows = `select platform, platform_channel_id, 'first_party' as source,
      exists (select from session_streams t join stream_sessions s on s.id = t.session_id and s.is_live
        where t.platform = counted.platform and t.platform_channel_id = counted.platform_channel_id) as is_live,
      max(ended_at) as last_streamed_at,
      round(sum((figures ->> 'hours_watched')::numeric), 1)::double precision as hours_watched,
      max(peak_viewers) as peak_viewers, count(*) as stream_count
    from ${recent(p, 'public_streams', directory.platform)}
    where exists (select from channel_handles h where h.platform = counted.platform
      and h.platform_channel_id = counted.platform_channel_id)
    group by platform, platform_channel_id
    union all
    select s.platform, s.platform_channel_id, 'external_crawler', bool_or(s.ended_at is null), max(s.last_seen_at),
      round(sum(${CRAWLED_VIEWER_SECS}) / 3600, 1)::double precision, max(s.peak_viewers), count(*)
    from ${crawled(only)} group by s.platform, s.platform_channel_id`;
  return pageOf(db, p, { rows, ties: 'platform, platform_channel_id', ...directory, page });
}

/** Categories that were streamed; a crawled stream counts for its newest. */
export function gamesOf(
  db: Queryable,
  directory: Directory<(typeof GAME_SORTS)[number]>,
  page: Page,
): Promise<{ items: z.output<typeof PublicGame>[]; total: number }> {
  const p = new Parameters();
  const only = p.add(directory.platform);
  const rows = `select category, round((sum(viewer_secs) / 3600)::numeric, 1)::double precision as hours_watched,
      max(peak_viewers) as peak_viewers, count(distinct (platform, broadcast_id)) as stream_count,
      count(distinct (platform, platform_channel_id)) as channel_count
    from (
      select category, platform, platform_channel_id, broadcast_id, avg_viewers * duration_secs as viewer_secs,
        (select t.peak_viewers from public_streams t where t.platform = counted.platform
          and t.broadcast_id = counted.broadcast_id and t.account_id = counted.account_id) as peak_viewers
      from ${recent(p, 'public_stream_categories', directory.platform)}
      union all
      select s.category, s.platform, s.platform_channel_id, s.broadcast_id, ${CRAWLED_VIEWER_SECS}, s.peak_viewers
      from ${crawled(only)} and s.category is not null) played
    group by category`;
  return pageOf(db, p, { rows, ties: 'category', ...directory, page });
}

/** Emotes that were written. */
export function emotesOf(
  db: Queryable,
  directory: Directory<(typeof EMOTE_SORTS)[number]>,
  page: Page,
): Promise<{ items: z.output<typeof PublicEmote>[]; total: number }> {
  const p = new Parameters();
  const rows = `select id, max(url) as url, provider, max(name) as alt, sum(count)::bigint as count,
      count(distinct (platform, platform_channel_id)) as channel_count
    from ${recent(p, 'public_stream_emotes', directory.platform)} group by provider, id`;
  return pageOf(db, p, { rows, ties: 'provider, id', ...directory, page });
}

async function pageOf<T>(
  db: Queryable,
  p: Parameters,
  of: { rows: string; ties: string; sort_by: string; sort_dir: 'asc' | 'desc'; page: Page },
): Promise<{ items: T[]; total: number }> {
  const { rows, ties, sort_by, sort_dir, page } = of;
  const [counted] = await db.query<{ total: number }>(`select count(*)::int as total from (${rows}) r`, [...p.values]);
  const order = `${sort_by} ${sort_dir} nulls last, ${ties}`;
  const items = await db.query(
    `select * from (${rows}) r order by ${order} limit ${p.add(page.limit)} offset ${p.add(page.offset)}`,
    p.values,
  );
  return { items: items as T[], total: counted!.total };
}
