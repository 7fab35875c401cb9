import { z } from 'zod';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import { SessionFigures, StreamFigures, StreamSums } from '../../domain/history/session-figures';
import type { Queryable } from '../../engines/postgres/port';
import { literal, Parameters } from '../../kernel/sql';

const dateTime = z.string().meta({ format: 'date-time' });

export const SESSION_TYPES = ['single', 'multi'] as const;
export const SESSION_SORTS = [
  ...['started_at', 'duration_secs', 'peak_viewers', 'avg_viewers'],
  ...['total_messages', 'unique_chatters', 'new_followers'],
] as const;

/** A session as it is listed. Source: spec doc2 §2.14. */
export const SessionSummary = z
  .object({
    id: z.uuid(),
    session_type: z.enum(SESSION_TYPES).describe('`multi`: on several platforms'),
    is_live: z.boolean().describe('The figures are those of now, and change'),
    title: z.string().nullable(),
    platforms: z.array(z.enum(PLATFORMS)),
    categories: z.array(z.string()),
    started_at: dateTime,
    ended_at: dateTime.nullable(),
    duration_secs: z.int().min(0).describe('In which at least one platform was on air'),
    ...StreamSums.shape,
    followers_per_hour: z.number().nullable(),
  })
  .meta({ id: 'StreamSessionSummary' });
export type SessionSummary = z.output<typeof SessionSummary>;

const ReportStream = z
  .object({
    ...StreamFigures.shape,
    shared_chat_sources: z
      .array(
        z
          .object({
            platform_channel_id: z.string(),
            message_count: z.int(),
            display_name: z.string().nullable(),
            avatar_url: z.string().nullable(),
          })
          .meta({ id: 'SharedChatSource' }),
      )
      .nullable()
      .describe('Null for first-party sessions'),
  })
  .meta({ id: 'StreamReportStream' });

export const TopChatter = z
  .object({
    platform: z.enum(PLATFORMS),
    platform_user_id: z.string().nullable(),
    username: z.string().nullable(),
    display_name: z.string().nullable(),
    avatar_url: z.string().nullable(),
    message_count: z.int(),
  })
  .meta({ id: 'StreamTopChatter' });

const PlatformMarkers = <Markers extends z.ZodType>(id: string, markers: Markers) =>
  z
    .object({
      total: markers,
      platforms: z.array(z.object({ platform: z.enum(PLATFORMS), markers }).meta({ id: `Platform${id}` })),
    })
    .meta({ id });

/** Means of the ten sessions before. */
const Comparison = z
  .object({
    sessions: z.int().describe('How many there were; at most ten'),
    duration_secs: z.number().nullable(),
    peak_viewers: z.number().nullable(),
    avg_viewers: z.number().nullable(),
    total_messages: z.number().nullable(),
    unique_chatters: z.number().nullable(),
    new_followers: z.number().nullable(),
  })
  .meta({ id: 'StreamComparison' });

/** The report of a session. Source: spec doc2 §2.14. */
export const StreamReport = z
  .object({
    summary: SessionSummary,
    streams: z.array(ReportStream),
    top_chatters: z.array(TopChatter).describe('Most messages first; without those that were erased'),
    top_emotes: SessionFigures.shape.top_emotes,
    top_gifs: SessionFigures.shape.top_gifs,
    viewer_markers: PlatformMarkers('StreamViewerMarkers', SessionFigures.shape.viewer_markers),
    follower_markers: PlatformMarkers('StreamFollowerMarkers', SessionFigures.shape.follower_markers),
    comparison: Comparison,
  })
  .meta({ id: 'StreamReport' });
export type StreamReport = z.output<typeof StreamReport>;

export interface SessionFilter {
  from: string | null;
  to: string | null;
  session_type: (typeof SESSION_TYPES)[number] | null;
  platform: Platform | null;
  search: string | null;
  category: string | null;
  sort_by: (typeof SESSION_SORTS)[number];
  sort_dir: 'asc' | 'desc';
}

const SESSIONS = 'stream_sessions s left join live_session_figures l on l.session_id = s.id and s.is_live';
const COLUMNS = `s.id, s.is_live, s.title, s.platforms, s.categories, s.started_at,
  case when s.is_live then null else s.ended_at end as ended_at, coalesce(l.figures, s.figures) as figures`;

interface SessionRow extends Record<string, unknown> {
  id: string;
  is_live: boolean;
  title: string | null;
  platforms: Platform[];
  categories: string[];
  started_at: string;
  ended_at: string | null;
  figures: SessionFigures | null;
}

/** The account's sessions that match; ties in the order of their starts, newest first. */
export async function sessionsOf(
  db: Queryable,
  account_id: string,
  filter: SessionFilter,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ items: SessionSummary[]; total: number }> {
  const p = new Parameters();
  const wanted = [`s.account_id = ${p.add(account_id)}::uuid`];
  if (filter.from !== null) wanted.push(`s.started_at >= ${p.add(filter.from)}::timestamptz`);
  if (filter.to !== null) wanted.push(`s.started_at < ${p.add(filter.to)}::timestamptz`);
  if (filter.session_type !== null)
    wanted.push(`cardinality(s.platforms) ${filter.session_type === 'multi' ? '>' : '<='} 1`);
  if (filter.platform !== null) wanted.push(`${p.add(filter.platform)} = any(s.platforms)`);
  if (filter.category !== null) wanted.push(`${p.add(filter.category)} = any(s.categories)`);
  if (filter.search !== null) {
    const part = p.add(`%${literal(filter.search)}%`);
    wanted.push(`(s.title ilike ${part} or exists (select from unnest(s.titles) t where t ilike ${part}))`);
  }
  const by = filter.sort_by === 'started_at' ? 's.started_at' : `coalesce(l.${filter.sort_by}, s.${filter.sort_by})`;
  const order = `${by} ${filter.sort_dir === 'asc' ? 'asc' : 'desc'} nulls last, s.started_at desc, s.id`;
  const where = wanted.join(' and ');
  const rows = await db.query<SessionRow & { total: number }>(
    `with page as (
       select s.id, row_number() over (order by ${order}) as place from ${SESSIONS} where ${where}
       order by ${order} limit ${p.add(limit)} offset ${p.add(offset)})
     select counted.total, shown.* from (select count(*)::int as total from stream_sessions s where ${where}) counted
       left join (select page.place, ${COLUMNS} from page join stream_sessions s using (id)
         left join live_session_figures l on l.session_id = s.id and s.is_live) shown on true
     order by shown.place`,
    p.values,
  );
  return { items: rows.filter(({ id }) => id !== null).map(summaryOf), total: rows[0]!.total };
}

/** Platforms and categories of the account's sessions, sorted. */
export async function filterOptionsOf(
  db: Queryable,
  account_id: string,
): Promise<{ platforms: string[]; categories: string[] }> {
  const [row] = await db.query<{ platforms: string[]; categories: string[] }>(
    `select
       array(select distinct p from stream_sessions, unnest(platforms) p where account_id = $1 order by 1) as platforms,
       array(select distinct c from stream_sessions, unnest(categories) c where account_id = $1 order by 1)
         as categories`,
    [account_id],
    'session-filter-options',
  );
  return row!;
}

/** The report of one of the account's sessions; undefined of an unknown or deleted one. */
export async function reportOf(
  db: Queryable,
  account_id: string,
  session_id: string,
): Promise<StreamReport | undefined> {
  const [row] = await db.query<SessionRow>(
    `select ${COLUMNS} from ${SESSIONS} where s.account_id = $1 and s.id = $2`,
    [account_id, session_id],
    'session-report',
  );
  if (row === undefined) return undefined;
  const figures = row.figures ?? noFigures(row);
  const { streams, top_chatters, top_emotes, top_gifs, viewer_markers, follower_markers } = figures;
  const byPlatform = <Markers>(markersOf: (stream: StreamFigures) => Markers) =>
    streams.map((stream) => ({ platform: stream.platform, markers: markersOf(stream) }));
  return {
    summary: summaryOf(row),
    streams: streams.map(({ top_chatters: _chatters, top_emotes: _emotes, top_gifs: _gifs, ...stream }) => ({
      ...stream,
      shared_chat_sources: null,
    })),
    top_chatters: await named(db, account_id, top_chatters),
    top_emotes,
    top_gifs,
    viewer_markers: { total: viewer_markers, platforms: byPlatform((stream) => stream.viewer_markers) },
    follower_markers: { total: follower_markers, platforms: byPlatform((stream) => stream.follower_markers) },
    comparison: await comparisonOf(db, account_id, row),
  };
}

/** Adds the names of chatters; those without a row are left out. */
async function named(
  db: Queryable,
  account_id: string,
  chatters: SessionFigures['top_chatters'],
): Promise<StreamReport['top_chatters']> {
  type Person = Omit<StreamReport['top_chatters'][number], 'platform' | 'message_count'> & { person_key: string };
  const rows = await db.query<Person & Record<string, unknown>>(
    `select person_key, platform_user_id, username, display_name, avatar_url from platform_users
     where account_id = $1 and person_key = any($2)`,
    [account_id, chatters.map(({ person_key }) => person_key)],
    'session-chatters',
  );
  const people = new Map(rows.map(({ person_key, ...person }) => [person_key, person]));
  return chatters.flatMap(({ person_key, ...counted }) => {
    const person = people.get(person_key);
    return person === undefined ? [] : [{ ...person, ...counted }];
  });
}

async function comparisonOf(
  db: Queryable,
  account_id: string,
  { started_at, id }: SessionRow,
): Promise<StreamReport['comparison']> {
  const means = ['duration_secs', 'peak_viewers', 'avg_viewers', 'total_messages', 'unique_chatters', 'new_followers'];
  const [row] = await db.query<StreamReport['comparison'] & Record<string, unknown>>(
    `select count(*)::int as sessions,
       ${means.map((name) => `round(avg(${name})::numeric, 1)::double precision as ${name}`).join(', ')}
     from (select * from stream_sessions
           where account_id = $1 and not is_live and started_at < $2::timestamptz and id <> $3
           order by started_at desc limit 10) before`,
    [account_id, started_at, id],
    'session-comparison',
  );
  return row!;
}

/** A live session that was not counted yet. */
function noFigures({ title, categories, started_at }: SessionRow): SessionFigures {
  const nothing = { title, titles: [], categories, streams: [], top_chatters: [], top_emotes: [], top_gifs: [] };
  const viewers = { peak_viewers: null, avg_viewers: null, hours_watched: null };
  const events = { new_followers: null, new_paid_subs: null, resubs: null, sub_upgrades: null, gifted_subs: null };
  return {
    ...nothing,
    duration_secs: Math.max(0, Math.floor((Date.now() - Date.parse(started_at)) / 1000)),
    ...viewers,
    ...{ total_messages: 0, unique_chatters: 0, emote_count: 0, gif_count: 0, rows_counted: 0 },
    ...events,
    ...{ bits: null, raids: null, raid_viewers: null, viewer_markers: null, follower_markers: null },
    received_raids: [],
  };
}

const SUMS = Object.keys(StreamSums.shape) as (keyof StreamSums)[];

function summaryOf(row: SessionRow): SessionSummary {
  const figures = row.figures ?? noFigures(row);
  const { id, is_live, platforms, started_at, ended_at } = row;
  const { duration_secs, new_followers } = figures;
  const hours = duration_secs / 3600;
  return {
    id,
    session_type: platforms.length > 1 ? 'multi' : 'single',
    is_live,
    title: figures.title ?? row.title,
    platforms,
    categories: row.categories,
    started_at,
    ended_at,
    duration_secs,
    ...(Object.fromEntries(SUMS.map((name) => [name, figures[name]])) as StreamSums),
    followers_per_hour: new_followers === null || hours === 0 ? null : Math.round((new_followers / hours) * 10) / 10,
  };
}

/** A sample of a session's broadcast, taken once a minute. Source: spec doc2 §2.14. */
export const SessionSample = z
  .object({
    sampled_at: dateTime,
    platform: z.enum(PLATFORMS),
    broadcast_id: z.string(),
    viewer_count: z.int().min(0),
    follower_count: z.int().nullable(),
    title: z.string().nullable(),
    category: z.string().nullable(),
  })
  .meta({ id: 'StreamSample' });
export type SessionSample = z.output<typeof SessionSample>;

/** Place of a sample in its session. */
export const SampleKey = z.tuple([z.iso.datetime(), z.enum(PLATFORMS), z.string().max(500)]);

/** Samples of a session, oldest first, behind `after`. One more than `limit` where there are more. */
export function samplesOf(
  db: Queryable,
  session_id: string,
  { platform, after, limit }: { platform: Platform | null; after: z.output<typeof SampleKey> | null; limit: number },
): Promise<SessionSample[]> {
  return db.query<SessionSample & Record<string, unknown>>(
    `select m.sampled_at, m.platform, m.broadcast_id, m.viewer_count, m.follower_count, m.stream_title as title,
       m.category
     from session_streams x join stream_samples m using (account_id, platform, broadcast_id)
     where x.session_id = $1 and ($2::text is null or x.platform = $2) and m.sampled_at >= x.started_at
       and ($3::timestamptz is null or (m.sampled_at, m.platform, m.broadcast_id) > ($3::timestamptz, $4, $5))
     order by m.sampled_at, m.platform, m.broadcast_id limit $6`,
    [session_id, platform, ...(after ?? [null, null, null]), limit + 1],
    'session-samples-page',
  );
}

/** At most `most` samples of a session, evenly spread, oldest first. */
export function thinnedSamplesOf(db: Queryable, session_id: string, most: number): Promise<SessionSample[]> {
  return db.query<SessionSample & Record<string, unknown>>(
    `select sampled_at, platform, broadcast_id, viewer_count, follower_count, title, category from (
       select m.sampled_at, m.platform, m.broadcast_id, m.viewer_count, m.follower_count, m.stream_title as title,
         m.category, row_number() over (order by m.sampled_at, m.platform, m.broadcast_id) - 1 as place,
         count(*) over () as total
       from session_streams x join stream_samples m using (account_id, platform, broadcast_id)
       where x.session_id = $1 and m.sampled_at >= x.started_at) numbered
     where place % greatest(1, ceil(total / $2::double precision))::bigint = 0 order by place`,
    [session_id, most],
    'session-samples-thinned',
  );
}

/** Whether the account has this session. */
export async function sessionState(
  db: Queryable,
  account_id: string,
  session_id: string,
): Promise<{ is_live: boolean } | undefined> {
  const rows = await db.query<{ is_live: boolean }>(
    'select is_live from stream_sessions where account_id = $1 and id = $2',
    [account_id, session_id],
    'session-state',
  );
  return rows[0];
}
