import { z } from 'zod';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { StoredStream } from '../../domain/history/session-figures';
import { DEFAULT_PUBLICNESS } from '../../domain/history/public-stats';
import type { Queryable } from '../../engines/postgres/port';
import { channelClosed, closedByOperator } from './channel-owners';
import { MAX_POINTS, TopImage, topImages } from './stream-sessions';

const dateTime = z.string().meta({ format: 'date-time' });

/** Whether an account's channel is public, as the account sees it. Source: spec doc2 §2.14. */
export const ChannelPublicness = z
  .object({
    platform: z.enum(PLATFORMS),
    platform_channel_id: z.string(),
    channel_name: z.string().nullable(),
    is_public: z.boolean(),
    show_top_chatters: z.boolean(),
    opted_out_via: z.string().nullable().describe('`owner` or `operator`; null of a public channel'),
    updated_at: dateTime.nullable().describe('Null: nobody has changed it'),
  })
  .meta({ id: 'ChannelPublicSettings' });
export type ChannelPublicness = z.output<typeof ChannelPublicness>;

export const PublicStreamSummary = z
  .object({
    broadcast_id: z.string(),
    title: z.string().nullable(),
    category: z.string().nullable(),
    started_at: dateTime,
    ended_at: dateTime.nullable().describe('Null while it is live'),
    duration_secs: z.int(),
    peak_viewers: z.int().nullable(),
    avg_viewers: z.int().nullable(),
    total_messages: z.int(),
  })
  .meta({ id: 'PublicStreamSummary' });
type PublicStreamSummary = z.output<typeof PublicStreamSummary>;

/** Sums of a channel's streams, live ones included. Source: spec doc2 §2.14. */
export const PublicChannel = z
  .object({
    platform_channel_id: z.string(),
    channel_display_name: z.string().nullable(),
    source: z.enum(['first_party', 'external_crawler']),
    stream_count: z.int(),
    total_duration_secs: z.int(),
    peak_viewers: z.int().nullable(),
    avg_viewers: z.int().nullable().describe('Weighted by the length of streams'),
    total_messages: z.int(),
    last_streamed_at: dateTime,
    broadcaster_type: z.string().nullable().describe('`partner` or `affiliate`, where the platform reports it'),
    recent_streams: z.array(PublicStreamSummary).describe('The last ten'),
  })
  .meta({ id: 'PublicChannelStats' });
export type PublicChannel = z.output<typeof PublicChannel>;

const PublicChatter = z
  .object({ display_name: z.string().nullable(), message_count: z.int() })
  .meta({ id: 'PublicTopChatter' });

/** A stream as everybody may see it. Source: spec doc2 §2.14. */
export const PublicStream = z
  .object({
    summary: PublicStreamSummary,
    emote_count: z.int(),
    top_emotes: z.array(TopImage),
    gif_count: z.int(),
    top_gifs: z.array(TopImage),
    new_paid_subs: z.int().nullable(),
    gifted_subs: z.int().nullable(),
    new_followers: z.int().nullable(),
    viewer_curve: z.array(z.object({ sampled_at: dateTime, viewer_count: z.int() }).meta({ id: 'ViewerPoint' })),
    top_chatters: z.array(PublicChatter).nullable().describe('Null unless the channel shows them'),
    shared_chat_sources: z.array(z.string()).nullable(),
  })
  .meta({ id: 'PublicStreamStats' });
export type PublicStream = z.output<typeof PublicStream>;

/** True where an operator closed the channel, and no account has changed it since. */
export async function isClosedByOperator(
  db: Queryable,
  of: { platform: Platform; platform_channel_id: string },
): Promise<boolean> {
  const [row] = await db.query<{ is_closed: boolean }>(
    `select ${closedByOperator('s')} as is_closed
     from (select $1::text as platform, $2::text as platform_channel_id) s`,
    [of.platform, of.platform_channel_id],
    'channel-closed-by-operator',
  );
  return row!.is_closed;
}

/** Publicness of the account's channels, by platform. */
export function publicnessOf(
  db: Queryable,
  account_id: string,
): Promise<(Omit<ChannelPublicness, 'channel_name'> & Record<string, unknown>)[]> {
  const { is_public, show_top_chatters } = DEFAULT_PUBLICNESS;
  return db.query(
    `select c.platform, c.platform_channel_id, coalesce(p.is_public, ${is_public}) and not ${closedByOperator('c')} as is_public,
       coalesce(p.show_top_chatters, ${show_top_chatters}) as show_top_chatters,
       coalesce(p.opted_out_via, case when ${closedByOperator('c')} then 'operator' end) as opted_out_via, p.updated_at
     from channel_connections c left join public_channels p using (account_id, platform, platform_channel_id)
     where c.account_id = $1 and c.platform = any($2) order by array_position($2::text[], c.platform)`,
    [account_id, PLATFORMS],
    'channel-publicness',
  );
}

type ChannelSums = Pick<
  PublicChannel,
  'stream_count' | 'total_duration_secs' | 'peak_viewers' | 'total_messages' | 'last_streamed_at'
> & { avg_viewers: number | null };

/** Streams that recent lists hold. */
const RECENT = 10;

/** Sums and latest streams of a public channel; undefined of one that has none or is closed. */
export async function publicChannelOf(
  db: Queryable,
  of: { platform: Platform; platform_channel_id: string },
): Promise<Omit<PublicChannel, 'channel_display_name'> | undefined> {
  const values = [of.platform, of.platform_channel_id];
  const [open] = await db.query<{ is_closed: boolean; broadcaster_type: string | null }>(
    `select ${channelClosed('s')} as is_closed,
       (select broadcaster_type from crawled_channels where platform = $1 and platform_channel_id = $2)
     from (select $1::text as platform, $2::text as platform_channel_id) s`,
    values,
    'public-channel-open',
  );
  if (open!.is_closed) return undefined;
  const [finished] = await db.query<ChannelSums & Record<string, unknown>>(
    `select stream_count, total_duration_secs, peak_viewers, avg_viewers, total_messages, last_streamed_at
     from public_channel_stats where platform = $1 and platform_channel_id = $2`,
    values,
    'public-channel',
  );
  const live = await liveStreamsOf(db, of);
  if (finished === undefined && live.length === 0) return undefined;
  const recent = await db.query<PublicStreamSummary & Record<string, unknown>>(
    `select * from (
       select distinct on (started_at, broadcast_id) broadcast_id, title, category, started_at, ended_at,
         duration_secs, peak_viewers, round(avg_viewers) as avg_viewers, total_messages
       from public_streams where platform = $1 and platform_channel_id = $2
       order by started_at desc, broadcast_id, account_id limit ${RECENT}) recent`,
    values,
    'public-channel-recent',
  );
  return {
    platform_channel_id: of.platform_channel_id,
    source: 'first_party',
    ...withLive(finished, live),
    broadcaster_type: open!.broadcaster_type,
    recent_streams: [...live, ...recent].slice(0, RECENT),
  };
}

/** The channel's streams on air, newest first; of a stream that two accounts count one. */
async function liveStreamsOf(
  db: Queryable,
  { platform: of, platform_channel_id }: { platform: Platform; platform_channel_id: string },
): Promise<PublicStreamSummary[]> {
  const rows = await db.query<{ figures: StoredStream }>(
    `select distinct on (x ->> 'broadcast_id') x as figures
     from session_streams t join stream_sessions s on s.id = t.session_id and s.is_live
       join live_session_figures f on f.session_id = s.id, jsonb_array_elements(f.figures -> 'streams') x
     where t.platform = $1 and t.platform_channel_id = $2 and x ->> 'platform' = $1
       and x ->> 'platform_channel_id' = $2 and x ->> 'broadcast_id' = t.broadcast_id
     order by x ->> 'broadcast_id', t.account_id`,
    [of, platform_channel_id],
    'public-channel-live',
  );
  return rows
    .map(({ figures }) => summaryOf(figures, figures.ended_at))
    .sort((a, b) => Date.parse(b.started_at) - Date.parse(a.started_at));
}

function summaryOf(figures: StoredStream, ended_at: string | null): PublicStreamSummary {
  const { broadcast_id, title, category, started_at, duration_secs, peak_viewers, total_messages } = figures;
  const avg_viewers = figures.avg_viewers === null ? null : Math.round(figures.avg_viewers);
  const viewers = { peak_viewers, avg_viewers };
  return { broadcast_id, title, category, started_at, ended_at, duration_secs, ...viewers, total_messages };
}

function withLive(finished: ChannelSums | undefined, live: readonly PublicStreamSummary[]) {
  const { stream_count = 0, total_duration_secs = 0, total_messages = 0 } = finished ?? {};
  const parts = [
    { secs: total_duration_secs, viewers: finished?.avg_viewers ?? null },
    ...live.map((one) => ({ secs: one.duration_secs, viewers: one.avg_viewers })),
  ].filter(({ viewers }) => viewers !== null);
  const secs = parts.reduce((sum, one) => sum + one.secs, 0);
  const viewer_secs = parts.reduce((sum, one) => sum + one.secs * one.viewers!, 0);
  const peaks = [finished?.peak_viewers ?? null, ...live.map((one) => one.peak_viewers)].filter((one) => one !== null);
  const ends = live.map((one) => Date.parse(one.started_at) + one.duration_secs * 1000);
  const last = Math.max(...ends, finished === undefined ? 0 : Date.parse(finished.last_streamed_at));
  return {
    stream_count: stream_count + live.length,
    total_duration_secs: live.reduce((sum, one) => sum + one.duration_secs, total_duration_secs),
    peak_viewers: peaks.length === 0 ? null : Math.max(...peaks),
    avg_viewers: parts.length === 0 ? null : Math.round(secs === 0 ? parts.at(-1)!.viewers! : viewer_secs / secs),
    total_messages: live.reduce((sum, one) => sum + one.total_messages, total_messages),
    last_streamed_at: new Date(last).toISOString(),
  };
}

/** Points by day in UTC since `from`. */
export async function trendsOf(
  db: Queryable,
  of: { platform: Platform; platform_channel_id: string },
  days: number,
): Promise<{ date: string; avg_viewers: number | null; follower_count: number | null }[]> {
  return db.query(
    `select to_char(day, 'YYYY-MM-DD') as date, follower_count,
       round(avg_viewers) as avg_viewers from (
       select (started_at at time zone 'UTC')::date as day,
         sum(avg_viewers * duration_secs) / nullif(sum(duration_secs) filter (where avg_viewers is not null), 0)
           as avg_viewers,
         (array_agg(follower_count order by ended_at desc) filter (where follower_count is not null))[1]
           as follower_count
       from (select distinct on (broadcast_id) * from public_streams
             where platform = $1 and platform_channel_id = $2 and started_at > now() - $3 * interval '1 day'
             order by broadcast_id, account_id) one
       group by 1) days order by day`,
    [of.platform, of.platform_channel_id, days],
    'public-channel-trends',
  );
}

type Found = { account_id: string; platform_channel_id: string; figures: StoredStream; is_live: boolean };

/** A public stream, finished or live; undefined of an unknown one or of a closed channel. */
async function foundStream(db: Queryable, of: Platform, broadcast_id: string): Promise<Found | undefined> {
  const [row] = await db.query<Found & Record<string, unknown>>(
    `select * from (
       select t.account_id, t.platform, t.platform_channel_id, t.figures, false as is_live
       from public_streams t where t.platform = $1 and t.broadcast_id = $2
       union all
       select f.account_id, x ->> 'platform', x ->> 'platform_channel_id', x, true
       from session_claims c join live_session_figures f using (session_id)
         join stream_sessions s on s.id = f.session_id and s.is_live,
         jsonb_array_elements(f.figures -> 'streams') x
       where c.platform = $1 and c.broadcast_id = $2 and x ->> 'platform' = $1 and x ->> 'broadcast_id' = $2) found
     where not ${channelClosed('found')} order by is_live desc, account_id limit 1`,
    [of, broadcast_id],
    'public-stream',
  );
  return row;
}

export async function publicStreamOf(
  db: Queryable,
  of: Platform,
  broadcast_id: string,
): Promise<PublicStream | undefined> {
  const found = await foundStream(db, of, broadcast_id);
  if (found === undefined) return undefined;
  const { figures, is_live } = found;
  const { emote_count, top_emotes, gif_count, top_gifs, new_paid_subs, gifted_subs, new_followers } = figures;
  return {
    summary: summaryOf(figures, is_live ? null : figures.ended_at),
    ...{ emote_count, top_emotes: topImages(top_emotes), gif_count, top_gifs: topImages(top_gifs) },
    ...{ new_paid_subs, gifted_subs, new_followers },
    viewer_curve: await curveOf(db, found),
    top_chatters: (await showsChatters(db, of, found.platform_channel_id)) ? await chattersOf(db, found) : null,
    shared_chat_sources: null,
  };
}

/** Shown where an account of the channel shows them, and none hides them. */
async function showsChatters(db: Queryable, of: Platform, platform_channel_id: string): Promise<boolean> {
  const [row] = await db.query<{ shows: boolean | null }>(
    `select bool_and(show_top_chatters) as shows from public_channels
     where platform = $1 and platform_channel_id = $2`,
    [of, platform_channel_id],
    'public-channel-chatters',
  );
  return row!.shows === true;
}

function chattersOf(db: Queryable, { account_id, figures }: Found): Promise<z.output<typeof PublicChatter>[]> {
  return db.query(
    `select coalesce(u.display_name, u.username) as display_name, c.message_count
     from jsonb_to_recordset($2::jsonb) as c (person_key uuid, message_count bigint)
       join platform_users u on u.account_id = $1 and u.person_key = c.person_key and u.platform_user_id is not null
     order by c.message_count desc, u.person_key`,
    [account_id, JSON.stringify(figures.top_chatters)],
    'public-stream-chatters',
  );
}

function curveOf(db: Queryable, { account_id, figures }: Found): Promise<PublicStream['viewer_curve']> {
  return db.query(
    `select min(sampled_at) as sampled_at, max(viewer_count) as viewer_count from (
       select sampled_at, viewer_count, (row_number() over (order by sampled_at) - 1)
         / ceil(count(*) over () / ${MAX_POINTS}.0)::bigint as interval
       from stream_samples where account_id = $1 and platform = $2 and broadcast_id = any($3)) numbered
     group by interval order by 1`,
    [account_id, figures.platform, broadcastsOf(figures)],
    'public-stream-curve',
  );
}

/** Figures of an earlier release have no list. */
const broadcastsOf = ({ broadcast_id, broadcast_ids }: Partial<StoredStream>): string[] =>
  broadcast_ids ?? [broadcast_id!];

/** Change of a stream's title or category, as the samples show it. */
export const StreamChange = z
  .object({
    change_type: z.enum(['title', 'category', 'tags']),
    old_value: z.string().nullable(),
    new_value: z.string().nullable(),
    changed_at: dateTime,
  })
  .meta({ id: 'PublicStreamChange' });

/** Changes of a public stream, newest first; undefined of an unknown one or of a closed channel. */
export async function streamChangesOf(
  db: Queryable,
  { platform: of, broadcast_id }: { platform: Platform; broadcast_id: string },
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: z.output<typeof StreamChange>[]; total: number } | undefined> {
  const found = await foundStream(db, of, broadcast_id);
  if (found === undefined) return undefined;
  const rows = await db.query<z.output<typeof StreamChange> & { total: number }>(
    `with sampled as (
       select sampled_at, stream_title, category, lag(stream_title) over w as old_title,
         lag(category) over w as old_category, row_number() over w as place
       from stream_samples where account_id = $1 and platform = $2 and broadcast_id = any($3)
       window w as (order by sampled_at)
     ), changes as (
       select 'title' as change_type, old_title as old_value, stream_title as new_value, sampled_at as changed_at
       from sampled where place > 1 and stream_title is distinct from old_title
       union all
       select 'category', old_category, category, sampled_at
       from sampled where place > 1 and category is distinct from old_category
     )
     select counted.total, page.* from (select count(*)::int as total from changes) counted
       left join (select * from changes order by changed_at desc, change_type limit $4 offset $5) page on true
     order by changed_at desc, change_type`,
    [found.account_id, of, broadcastsOf(found.figures), limit, offset],
    'public-stream-changes',
  );
  return { items: rows.filter(({ change_type }) => change_type !== null), total: rows[0]!.total };
}
