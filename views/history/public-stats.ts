import { z } from 'zod';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { StoredStream } from '../../domain/history/session-figures';
import { DEFAULT_PUBLICNESS } from '../../domain/history/public-stats';
import type { Queryable } from '../../engines/postgres/port';
import { literal, Parameters } from '../../kernel/sql';
import { TopImage, topImages } from './stream-sessions';

const dateTime = z.string().meta({ format: 'date-time' });
const platform = z.enum(PLATFORMS);

/** Whether an account's channel is public, as the account sees it. Source: spec doc2 §2.14. */
export const ChannelPublicness = z
  .object({
    platform,
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
    platform,
    broadcast_id: z.string(),
    title: z.string().nullable(),
    category: z.string().nullable(),
    is_live: z.boolean(),
    started_at: dateTime,
    ended_at: dateTime.nullable(),
    duration_secs: z.int(),
    peak_viewers: z.int().nullable(),
    avg_viewers: z.number().nullable(),
    total_messages: z.int(),
  })
  .meta({ id: 'PublicStreamSummary' });

const sums = {
  stream_count: z.int(),
  total_duration_secs: z.int(),
  peak_viewers: z.int().nullable(),
  avg_viewers: z.number().nullable().describe('Weighted by the length of streams'),
  total_messages: z.int(),
  last_streamed_at: dateTime,
};

/** Sums of a channel's finished streams. Source: spec doc2 §2.14. */
export const PublicChannel = z
  .object({
    platform,
    platform_channel_id: z.string(),
    channel_display_name: z.string().nullable(),
    source: z.enum(['first_party', 'external_crawler']),
    ...sums,
    broadcaster_type: z.string().nullable().describe('`partner` or `affiliate`, where the platform reports it'),
    recent_streams: z.array(PublicStreamSummary).describe('The last ten'),
  })
  .meta({ id: 'PublicChannelStats' });
export type PublicChannel = z.output<typeof PublicChannel>;

/** A channel in the directory. */
export const PublicChannelSummary = z
  .object({ platform, channel: z.string().describe('Its handle'), platform_channel_id: z.string(), ...sums })
  .meta({ id: 'PublicChannelSummary' });
export type PublicChannelSummary = z.output<typeof PublicChannelSummary>;

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

/** Points of a curve. */
const MAX_POINTS = 480;
/** Days that the directories of games and emotes look back. */
const DIRECTORY_DAYS = 30;

const closed = (of: string) => `exists (
  select from public_channels p
  where p.platform = ${of}.platform and p.platform_channel_id = ${of}.platform_channel_id and not p.is_public)`;

/** Publicness of the account's channels, by platform. */
export function publicnessOf(
  db: Queryable,
  account_id: string,
): Promise<(Omit<ChannelPublicness, 'channel_name'> & Record<string, unknown>)[]> {
  const { is_public, show_top_chatters } = DEFAULT_PUBLICNESS;
  return db.query(
    `select c.platform, c.platform_channel_id, coalesce(p.is_public, ${is_public}) as is_public,
       coalesce(p.show_top_chatters, ${show_top_chatters}) as show_top_chatters, p.opted_out_via, p.updated_at
     from channel_connections c left join public_channels p using (account_id, platform, platform_channel_id)
     where c.account_id = $1 and c.platform = any($2) order by array_position($2::text[], c.platform)`,
    [account_id, PLATFORMS],
    'channel-publicness',
  );
}

/** Sums and latest streams of a public channel; undefined of one that has none or is closed. */
export async function publicChannelOf(
  db: Queryable,
  of: { platform: Platform; platform_channel_id: string },
): Promise<Omit<PublicChannel, 'channel_display_name'> | undefined> {
  const values = [of.platform, of.platform_channel_id];
  const [row] = await db.query<Omit<PublicChannelSummary, 'channel'> & Record<string, unknown>>(
    `select platform, platform_channel_id, stream_count, total_duration_secs, peak_viewers, avg_viewers, total_messages,
       last_streamed_at from public_channel_stats s
     where platform = $1 and platform_channel_id = $2 and not ${closed('s')}`,
    values,
    'public-channel',
  );
  if (row === undefined) return undefined;
  const recent_streams = await db.query<z.output<typeof PublicStreamSummary> & Record<string, unknown>>(
    `select * from (
       select distinct on (started_at, broadcast_id) platform, broadcast_id, title, category, false as is_live,
         started_at, ended_at, duration_secs, peak_viewers, avg_viewers, total_messages
       from public_streams where platform = $1 and platform_channel_id = $2
       order by started_at desc, broadcast_id, account_id limit 10) recent`,
    values,
    'public-channel-recent',
  );
  return { ...row, source: 'first_party', broadcaster_type: null, recent_streams };
}

/** Points by day in UTC since `from`. */
export async function trendsOf(
  db: Queryable,
  of: { platform: Platform; platform_channel_id: string },
  days: number,
): Promise<{ date: string; avg_viewers: number | null; follower_count: number | null }[]> {
  return db.query(
    `select to_char(day, 'YYYY-MM-DD') as date, follower_count,
       round(avg_viewers::numeric, 1)::double precision as avg_viewers from (
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
     where not ${closed('found')} order by is_live desc, account_id limit 1`,
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
  const { title, category, started_at, ended_at, duration_secs, peak_viewers, avg_viewers, total_messages } = figures;
  const { emote_count, top_emotes, gif_count, top_gifs, new_paid_subs, gifted_subs, new_followers } = figures;
  const length = { started_at, ended_at: is_live ? null : ended_at, duration_secs };
  const summary = { platform: of, broadcast_id, title, category, is_live, ...length };
  return {
    summary: { ...summary, peak_viewers, avg_viewers, total_messages },
    ...{ emote_count, top_emotes: topImages(top_emotes), gif_count, top_gifs: topImages(top_gifs) },
    ...{ new_paid_subs, gifted_subs, new_followers },
    viewer_curve: await curveOf(db, found, of, broadcast_id),
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
       join platform_users u on u.account_id = $1 and u.person_key = c.person_key
     order by c.message_count desc, u.person_key`,
    [account_id, JSON.stringify(figures.top_chatters)],
    'public-stream-chatters',
  );
}

function curveOf(
  db: Queryable,
  { account_id }: Found,
  of: Platform,
  broadcast_id: string,
): Promise<PublicStream['viewer_curve']> {
  return db.query(
    `select sampled_at, viewer_count from (
       select sampled_at, viewer_count, row_number() over (order by sampled_at) - 1 as place,
         count(*) over () as total
       from stream_samples where account_id = $1 and platform = $2 and broadcast_id = $3) numbered
     where place % greatest(1, ceil(total / ${MAX_POINTS}::double precision))::bigint = 0 order by sampled_at`,
    [account_id, of, broadcast_id],
    'public-stream-curve',
  );
}

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
       from stream_samples where account_id = $1 and platform = $2 and broadcast_id = $3
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
    [found.account_id, of, broadcast_id, limit, offset],
    'public-stream-changes',
  );
  return { items: rows.filter(({ change_type }) => change_type !== null), total: rows[0]!.total };
}

export const BROWSE_SORTS = [
  ...['last_streamed_at', 'peak_viewers', 'avg_viewers', 'total_messages', 'stream_count', 'total_duration_secs'],
] as const;

/** The directory of public channels with a handle. */
export async function browsedChannels(
  db: Queryable,
  filter: { platform: Platform | null; category: string | null; sort_by: string },
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: Omit<PublicChannelSummary, 'channel'>[]; total: number }> {
  const p = new Parameters();
  const wanted = [
    `not ${closed('s')}`,
    `exists (select from channel_handles h
       where h.platform = s.platform and h.platform_channel_id = s.platform_channel_id)`,
  ];
  if (filter.platform !== null) wanted.push(`s.platform = ${p.add(filter.platform)}`);
  if (filter.category !== null) {
    wanted.push(`exists (select from public_stream_categories c where c.platform = s.platform
      and c.platform_channel_id = s.platform_channel_id and c.category = ${p.add(filter.category)}
      and c.started_at > now() - interval '${DIRECTORY_DAYS} days')`);
  }
  const from = `public_channel_stats s where ${wanted.join(' and ')}`;
  const order = `s.${filter.sort_by} desc nulls last, s.platform, s.platform_channel_id`;
  return pageOf(db, p, {
    rows: `select s.* from ${from} order by ${order}`,
    count: `select count(*)::int as total from ${from}`,
    page: { limit, offset },
  });
}

export const PublicGame = z
  .object({
    category: z.string(),
    channel_count: z.int(),
    stream_count: z.int(),
    duration_secs: z.int(),
    avg_viewers: z.number().nullable().describe('Weighted by time'),
  })
  .meta({ id: 'PublicGame' });

export const PublicEmote = z
  .object({
    provider: z.string(),
    id: z.string(),
    name: z.string(),
    url: z.string().nullable(),
    count: z.int(),
    channel_count: z.int(),
  })
  .meta({ id: 'PublicEmote' });

interface Directory {
  platform: Platform | null;
  search: string | null;
}

/** The categories of the last 30 days, by the time that was streamed. */
export function gamesOf(
  db: Queryable,
  { platform: of, search }: Directory,
  page: { limit: number; offset: number },
): Promise<{ items: z.output<typeof PublicGame>[]; total: number }> {
  const p = new Parameters();
  const from = directory(p, 'public_stream_categories', of);
  const where = search === null ? '' : `where category ilike ${p.add(`%${literal(search)}%`)}`;
  const rows = `select category, count(distinct (platform, platform_channel_id)) as channel_count,
      count(distinct (platform, broadcast_id)) as stream_count, sum(duration_secs)::bigint as duration_secs,
      round((sum(avg_viewers * duration_secs) / nullif(sum(duration_secs), 0))::numeric, 1)::double precision
        as avg_viewers
    from ${from} ${where} group by category order by 4 desc, category`;
  return pageOf(db, p, { rows, count: `select count(*)::int as total from (${rows}) all_rows`, page });
}

/** The emotes of the last 30 days, by how often they were written. */
export function emotesOf(
  db: Queryable,
  { platform: of, search }: Directory,
  page: { limit: number; offset: number },
): Promise<{ items: z.output<typeof PublicEmote>[]; total: number }> {
  const p = new Parameters();
  const from = directory(p, 'public_stream_emotes', of);
  const where = search === null ? '' : `where name ilike ${p.add(`%${literal(search)}%`)}`;
  const rows = `select provider, id, max(name) as name, max(url) as url, sum(count)::bigint as count,
      count(distinct (platform, platform_channel_id)) as channel_count
    from ${from} ${where} group by provider, id order by 5 desc, provider, id`;
  return pageOf(db, p, { rows, count: `select count(*)::int as total from (${rows}) all_rows`, page });
}

/** Rows of a directory, of public channels alone; of a stream that two accounts have counted one account's. */
function directory(p: Parameters, table: string, of: Platform | null): string {
  const only = of === null ? '' : `and d.platform = ${p.add(of)}`;
  return `(select d.* from ${table} d where d.started_at > now() - interval '${DIRECTORY_DAYS} days' ${only}
     and not ${closed('d')} and not exists (select from ${table} o where o.platform = d.platform
       and o.broadcast_id = d.broadcast_id and o.account_id < d.account_id)) counted`;
}

async function pageOf<T>(
  db: Queryable,
  p: Parameters,
  { rows, count, page }: { rows: string; count: string; page: { limit: number; offset: number } },
): Promise<{ items: T[]; total: number }> {
  const [counted] = await db.query<{ total: number }>(count, [...p.values]);
  const items = await db.query(`${rows} limit ${p.add(page.limit)} offset ${p.add(page.offset)}`, p.values);
  return { items: items as T[], total: counted!.total };
}
