import { z } from 'zod';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import type { SessionFigures, StreamFigures } from '../../domain/history/session-figures';
import {
  type SESSION_TYPES,
  SessionSummary,
  ShownFigures,
  shownFigures,
  type SummarisedSession,
  summaryOf,
} from '../../domain/history/session-summary';
import type { Queryable } from '../../engines/postgres/port';
import { literal, Parameters } from '../../kernel/sql';
import { withRaiders } from './raiders';

const dateTime = z.string().meta({ format: 'date-time' });

export const SESSION_SORTS = [
  ...['started_at', 'duration_secs', 'peak_viewers', 'avg_viewers'],
  ...['total_messages', 'unique_chatters', 'new_followers'],
] as const;

const ReportStream = z
  .object({
    platform: z.string(),
    platform_channel_id: z.string(),
    broadcast_id: z.string(),
    title: z.string().nullable(),
    category: z.string().nullable(),
    started_at: dateTime,
    ended_at: dateTime.nullable(),
    duration_secs: z.int().min(0),
    ...ShownFigures.shape,
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

const TopChatter = z
  .object({
    platform: z.string(),
    platform_user_id: z.string().nullable(),
    display_name: z.string().nullable(),
    message_count: z.int(),
  })
  .meta({ id: 'StreamTopChatter' });

/** An emote or GIF with its uses. */
export const TopImage = z
  .object({
    id: z.string(),
    url: z.string().nullable(),
    provider: z.string(),
    alt: z.string(),
    count: z.int(),
  })
  .meta({ id: 'StreamTopImage' });
export type TopImage = z.output<typeof TopImage>;

const MARKERS = {
  first: z.int(),
  last: z.int(),
  peak: z.int(),
  peak_at: dateTime.nullable(),
};
const StreamMarkers = z
  .object({
    total: z.object(MARKERS).meta({ id: 'StreamMarkerTotal' }).nullable(),
    platforms: z.array(z.object({ platform: z.string(), ...MARKERS }).meta({ id: 'StreamPlatformMarkers' })),
  })
  .meta({ id: 'StreamMarkers' });
type StreamMarkers = z.output<typeof StreamMarkers>;

/** Means of at most ten finalized sessions before. */
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

const CategoryViewers = z
  .object({ category: z.string(), duration_secs: z.int(), avg_viewers: z.int() })
  .meta({ id: 'StreamCategoryViewers' });
const ReceivedRaid = z
  .object({
    platform: z.string(),
    raided_at: dateTime,
    viewers: z.int(),
    retained_viewers: z.int().nullable(),
    platform_user_id: z.string().nullable().describe('The raider; null, like the name, once the event is gone'),
    display_name: z.string().nullable(),
  })
  .meta({ id: 'StreamReceivedRaid' });

/** The report of a session. Source: spec doc2 §2.14. */
export const StreamReport = z
  .object({
    ...SessionSummary.shape,
    streams: z.array(ReportStream),
    top_chatters: z.array(TopChatter).describe('Most messages first; without those that were erased'),
    top_emotes: z.array(TopImage),
    top_gifs: z.array(TopImage),
    viewer_markers: StreamMarkers,
    follower_markers: StreamMarkers,
    viewers_by_category: z.array(CategoryViewers).describe('Longest first'),
    comparison: Comparison,
    raids: z.array(ReceivedRaid).describe('Oldest first'),
  })
  .meta({ id: 'StreamReport' });
export type StreamReport = z.output<typeof StreamReport>;

/** A report with what its files draw. */
export type DetailedReport = Omit<StreamReport, 'streams'> & {
  streams: (z.output<typeof ReportStream> &
    Pick<StreamFigures, 'categories' | 'message_interval_secs' | 'message_counts'> & { broadcast_ids: string[] })[];
};

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

/** The id that $2 leads to, its own unless the session was merged. */
const STAYING = 'coalesce((select into_id from merged_sessions where session_id = $2::uuid), $2::uuid)';

type SessionRow = SummarisedSession & Record<string, unknown>;

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
       array(select distinct p collate "C" from stream_sessions, unnest(platforms) p where account_id = $1
         order by 1) as platforms,
       array(select distinct c collate "C" from stream_sessions, unnest(categories) c where account_id = $1
         order by 1)
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
): Promise<DetailedReport | undefined> {
  const [row] = await db.query<SessionRow>(
    `select ${COLUMNS} from ${SESSIONS} where s.account_id = $1 and s.id = ${STAYING}`,
    [account_id, session_id],
    'session-report',
  );
  if (row === undefined) return undefined;
  const { figures } = row;
  const streams = figures?.streams ?? [];
  return {
    ...summaryOf(row),
    streams: streams.map((stream) => ({ ...stream, ...shownFigures(stream), shared_chat_sources: null })),
    top_chatters: await named(db, account_id, figures?.top_chatters.slice(0, TOP_SHOWN) ?? []),
    top_emotes: topImages(figures?.top_emotes ?? []),
    top_gifs: topImages(figures?.top_gifs ?? []),
    viewer_markers: markersOf(figures?.viewer_markers ?? null, streams, 'viewer_markers'),
    follower_markers: markersOf(figures?.follower_markers ?? null, streams, 'follower_markers'),
    viewers_by_category: viewersByCategory(streams),
    comparison: await comparisonOf(db, account_id, row),
    raids: await withRaiders(db, account_id, figures?.received_raids ?? []),
  };
}

/** Rows of a top list as answers have them. */
const TOP_SHOWN = 25;

/** Emotes or GIFs in the shape of answers, at most 25. */
export const topImages = (
  rows: readonly (Omit<TopImage, 'alt'> & ({ name: string } | { alt: string }))[],
): TopImage[] =>
  rows.slice(0, TOP_SHOWN).map((row) => {
    const { id, url, provider, count } = row;
    return { id, url, provider, alt: 'alt' in row ? row.alt : row.name, count };
  });

function markersOf(
  total: NonNullable<StreamMarkers['total']> | null,
  streams: readonly StreamFigures[],
  name: 'viewer_markers' | 'follower_markers',
): StreamMarkers {
  const platforms = new Map<string, StreamMarkers['platforms'][number]>();
  for (const { platform, [name]: markers } of streams) {
    if (markers === null) continue;
    const { first, last, peak, peak_at } = markers;
    const known = platforms.get(platform);
    if (known === undefined) platforms.set(platform, { platform, first, last, peak, peak_at });
    else platforms.set(platform, { ...known, last, ...(peak > known.peak && { peak, peak_at }) });
  }
  return { total, platforms: [...platforms.values()] };
}

function viewersByCategory(streams: readonly StreamFigures[]): StreamReport['viewers_by_category'] {
  const sums = new Map<string, { seconds: number; viewer_secs: number }>();
  for (const { category, duration_secs, avg_viewers } of streams.flatMap(({ categories }) => categories)) {
    const { seconds, viewer_secs } = sums.get(category) ?? { seconds: 0, viewer_secs: 0 };
    sums.set(category, {
      seconds: seconds + duration_secs,
      viewer_secs: viewer_secs + avg_viewers * duration_secs,
    });
  }
  return [...sums]
    .map(([category, { seconds, viewer_secs }]) => ({
      category,
      duration_secs: seconds,
      avg_viewers: seconds === 0 ? 0 : Math.round(viewer_secs / seconds),
    }))
    .sort((a, b) => b.duration_secs - a.duration_secs || (a.category < b.category ? -1 : 1));
}

/** Adds the names of chatters; those without a row and erased ones are left out. */
async function named(
  db: Queryable,
  account_id: string,
  chatters: SessionFigures['top_chatters'],
): Promise<StreamReport['top_chatters']> {
  type Person = Pick<StreamReport['top_chatters'][number], 'platform_user_id' | 'display_name'>;
  const rows = await db.query<Person & { person_key: string }>(
    `select person_key, platform_user_id, coalesce(display_name, username) as display_name from platform_users
     where account_id = $1 and person_key = any($2) and platform_user_id is not null`,
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

/** A sample of a session, taken once a minute. Source: spec doc2 §2.14. */
export const SessionSample = z
  .object({ platform: z.string(), sampled_at: dateTime, viewer_count: z.int().min(0) })
  .meta({ id: 'StreamSample' });
export type SessionSample = z.output<typeof SessionSample>;
/** With the broadcast, which the place of a sample needs. */
export type SampleRow = SessionSample & { platform: Platform; broadcast_id: string };

/** Place of a sample in its session. */
export const SampleKey = z.tuple([z.iso.datetime(), z.enum(PLATFORMS), z.string().max(500)]);

/** Samples of a session, oldest first, behind `after`. One more than `limit` where there are more. */
export function samplesOf(
  db: Queryable,
  session_id: string,
  { platform, after, limit }: { platform: Platform | null; after: z.output<typeof SampleKey> | null; limit: number },
): Promise<SampleRow[]> {
  return db.query<SampleRow & Record<string, unknown>>(
    `select m.platform, m.sampled_at, m.viewer_count, m.broadcast_id
     from session_streams x join stream_samples m using (account_id, platform, broadcast_id)
     where x.session_id = $1 and ($2::text is null or x.platform = $2) and m.sampled_at >= x.started_at
       and ($3::timestamptz is null or (m.sampled_at, m.platform, m.broadcast_id) > ($3::timestamptz, $4, $5))
     order by m.sampled_at, m.platform, m.broadcast_id limit $6`,
    [session_id, platform, ...(after ?? [null, null, null]), limit + 1],
    'session-samples-page',
  );
}

/** Points of a platform in an answer. */
export const MAX_POINTS = 1_440;

/** Samples of a session, oldest first; of a platform with too many the maximum of each interval. */
export function thinnedSamplesOf(db: Queryable, session_id: string): Promise<SessionSample[]> {
  return db.query<SessionSample & Record<string, unknown>>(
    `select platform, min(sampled_at) as sampled_at, max(viewer_count) as viewer_count from (
       select m.platform, m.sampled_at, m.viewer_count,
         (row_number() over (partition by m.platform order by m.sampled_at, m.broadcast_id) - 1)
           / ceil(count(*) over (partition by m.platform) / ${MAX_POINTS}.0)::bigint as interval
       from session_streams x join stream_samples m using (account_id, platform, broadcast_id)
       where x.session_id = $1 and m.sampled_at >= x.started_at) numbered
     group by platform, interval order by 2, 1`,
    [session_id],
    'session-samples-thinned',
  );
}

/** The account's session of this id; that of a merged session is the one that stayed. */
export async function sessionState(
  db: Queryable,
  account_id: string,
  session_id: string,
): Promise<{ id: string; is_live: boolean } | undefined> {
  const rows = await db.query<{ id: string; is_live: boolean }>(
    `select id, is_live from stream_sessions where account_id = $1 and id = ${STAYING}`,
    [account_id, session_id],
    'session-state',
  );
  return rows[0];
}
