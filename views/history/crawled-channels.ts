import type { z } from 'zod';
import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { PublicChannel, PublicStream, PublicStreamSummary } from './public-stats';
import { MAX_POINTS } from './stream-sessions';

interface Channel {
  platform: Platform;
  platform_channel_id: string;
}
type Summary = z.output<typeof PublicStreamSummary>;

/** Streams that recent lists hold. */
const RECENT = 10;

/**
 * SQL: true where everybody may see the crawled channel of the row `of`: it is watched, no operator has closed it, and
 * no account has it connected, whose own figures win.
 */
export const crawledOpen = (of: string): string => `(exists (
    select from crawler_watchlist w join crawled_channels k on k.platform = w.platform and k.channel = w.channel
    where k.platform = ${of}.platform and k.platform_channel_id = ${of}.platform_channel_id)
  and not exists (
    select from crawler_opt_outs x where x.platform = ${of}.platform and (x.channel = ${of}.platform_channel_id
      or x.channel in (select k.channel from crawled_channels k where k.platform = ${of}.platform
        and k.platform_channel_id = ${of}.platform_channel_id)))
  and not exists (select from channel_connections n
    where n.platform = ${of}.platform and n.platform_channel_id = ${of}.platform_channel_id))`;

const SUMMARY = `s.broadcast_id, s.title, s.category, s.started_at, s.ended_at,
  greatest(0, floor(extract(epoch from s.last_seen_at - s.started_at)))::bigint as duration_secs, s.peak_viewers,
  round(s.viewers::numeric / s.samples)::bigint as avg_viewers, 0 as total_messages`;

type Sums = Pick<PublicChannel, 'stream_count' | 'total_duration_secs' | 'peak_viewers' | 'avg_viewers'> & {
  last_streamed_at: string | null;
  broadcaster_type: string | null;
};

/** Page of a crawled channel; undefined of one that is closed or has no streams. */
export async function crawledChannelOf(
  db: Queryable,
  { platform, platform_channel_id }: Channel,
): Promise<Omit<PublicChannel, 'channel_display_name'> | undefined> {
  const values = [platform, platform_channel_id];
  const [sums] = await db.query<Sums & Record<string, unknown>>(
    `select c.broadcaster_type, count(s.broadcast_id)::int as stream_count,
       coalesce(sum(greatest(0, floor(extract(epoch from s.last_seen_at - s.started_at)))), 0)::bigint
         as total_duration_secs,
       max(s.peak_viewers) as peak_viewers, round(sum(s.viewers) / nullif(sum(s.samples), 0))::bigint as avg_viewers,
       max(s.last_seen_at) as last_streamed_at
     from crawled_channels c left join crawled_streams s using (platform, platform_channel_id)
     where c.platform = $1 and c.platform_channel_id = $2 and ${crawledOpen('c')}
     group by c.broadcaster_type`,
    values,
    'crawled-channel',
  );
  if (sums === undefined || sums.last_streamed_at === null) return undefined;
  const recent_streams = await db.query<Summary & Record<string, unknown>>(
    `select ${SUMMARY} from crawled_streams s where s.platform = $1 and s.platform_channel_id = $2
     order by s.started_at desc, s.broadcast_id limit ${RECENT}`,
    values,
    'crawled-channel-recent',
  );
  const { last_streamed_at } = sums;
  const source = 'external_crawler' as const;
  return { platform_channel_id, source, ...sums, last_streamed_at, total_messages: 0, recent_streams };
}

/** A crawled stream: its viewers alone. Undefined of an unknown one or of a closed channel. */
export async function crawledStreamOf(
  db: Queryable,
  platform: Platform,
  broadcast_id: string,
): Promise<PublicStream | undefined> {
  const values = [platform, broadcast_id];
  const [summary] = await db.query<Summary & Record<string, unknown>>(
    `select ${SUMMARY} from crawled_streams s
     where s.platform = $1 and s.broadcast_id = $2 and ${crawledOpen('s')}`,
    values,
    'crawled-stream',
  );
  if (summary === undefined) return undefined;
  const viewer_curve = await db.query<PublicStream['viewer_curve'][number] & Record<string, unknown>>(
    `select min(sampled_at) as sampled_at, max(viewer_count) as viewer_count from (
       select sampled_at, viewer_count, (row_number() over (order by sampled_at) - 1)
         / ceil(count(*) over () / ${MAX_POINTS}.0)::bigint as interval
       from crawled_samples where platform = $1 and broadcast_id = $2) numbered
     group by interval order by 1`,
    values,
    'crawled-stream-curve',
  );
  return {
    summary,
    ...{ emote_count: 0, top_emotes: [], gif_count: 0, top_gifs: [] },
    ...{ new_paid_subs: null, gifted_subs: null, new_followers: null },
    viewer_curve,
    ...{ top_chatters: null, shared_chat_sources: null },
  };
}

interface ProfileChange {
  change_type: 'bio' | 'link' | 'team';
  old_value: unknown;
  new_value: unknown;
  changed_at: string;
}

/** Changes of a channel's profile, newest first. */
export async function profileChangesOf(
  db: Queryable,
  { platform, platform_channel_id }: Channel,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: ProfileChange[]; total: number }> {
  const of = 'from crawled_profile_changes where platform = $1 and platform_channel_id = $2';
  const values = [platform, platform_channel_id];
  const [counted] = await db.query<{ total: number }>(`select count(*)::int as total ${of}`, values);
  const items = await db.query<ProfileChange & Record<string, unknown>>(
    `select change_type, old_value, new_value, changed_at ${of} order by changed_at desc, id desc limit $3 offset $4`,
    [...values, limit, offset],
  );
  return { items, total: counted!.total };
}

/** Average viewers by day in UTC since `days` ago; a crawler counts no followers. */
export const crawledTrendsOf = (
  db: Queryable,
  { platform, platform_channel_id }: Channel,
  days: number,
): Promise<{ date: string; avg_viewers: number | null; follower_count: null }[]> =>
  db.query(
    `select to_char(sampled_at at time zone 'UTC', 'YYYY-MM-DD') as date, round(avg(viewer_count)) as avg_viewers,
       null as follower_count
     from crawled_samples where platform = $1 and platform_channel_id = $2
       and sampled_at > now() - $3 * interval '1 day'
     group by 1 order by 1`,
    [platform, platform_channel_id, days],
    'crawled-channel-trends',
  );
