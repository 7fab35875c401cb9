import { LATE_MICROS, NOBODY } from '../../domain/chat/chat-history';
import {
  addCounts,
  addedUp,
  bombRecipients,
  COUNTED_TYPES,
  EVENT_FIGURES,
  type EventCounts,
  type GiftBombs,
  KNOWN_BOT_IDS,
  KNOWN_BOTS,
  noCounts,
  type Raid,
  readCounts,
  type ReadCounts,
  type SessionFigures,
  STREAM_TOP_ROWS,
  type StoredStream,
  type StreamSums,
  TOP_ROWS,
} from '../../domain/history/session-figures';
import type { SessionStream } from '../../domain/history/stream-sessions';
import type { Queryable } from '../../engines/postgres/port';
import { shownInstant } from '../../lib/time/instants';
import { retainedViewers, type Samples, sampleFigures, sessionFollowers } from './viewer-figures';

/** A broadcast to count: `ended_at` is null while it is on air. */
export interface CountedStream extends SessionStream {
  ended_at: string | null;
  /** Bridged broadcasts of the channel, the first one included. */
  broadcast_ids: string[];
  /** YouTube's ids of their live chats, where they are known. */
  live_chat_ids: string[];
}

/** Bots, whose messages count nowhere. */
export interface Bots {
  /** `<platform>:<user id>` */
  ids: readonly string[];
  /** Lower-case logins, on any platform. */
  logins: readonly string[];
}

/** The configured bots; well-known ones where nothing is configured. */
export const botsOf = ({ bots }: { bots?: readonly string[] | undefined }): Bots =>
  bots === undefined ? { ids: KNOWN_BOT_IDS, logins: KNOWN_BOTS } : { ids: bots, logins: [] };

/** Joins broadcasts of a channel that follow each other within the grace. `streams` are in order of start. */
export function bridgedStreams(streams: readonly CountedStream[], grace_ms: number): CountedStream[] {
  const bridged: CountedStream[] = [];
  for (const stream of streams) {
    const before = bridged.findLast(
      (one) => one.platform === stream.platform && one.platform_channel_id === stream.platform_channel_id,
    );
    const ended = before?.ended_at === null ? Infinity : Date.parse(before?.ended_at ?? '');
    if (before === undefined || !(Date.parse(stream.started_at) <= ended + grace_ms)) {
      bridged.push({ ...stream });
      continue;
    }
    const is_later = stream.ended_at === null || Date.parse(stream.ended_at) > ended;
    if (is_later && ended !== Infinity) before.ended_at = stream.ended_at;
    before.broadcast_ids = [...before.broadcast_ids, ...stream.broadcast_ids];
    before.live_chat_ids = [...before.live_chat_ids, ...stream.live_chat_ids];
    before.title ??= stream.title;
    before.category ??= stream.category;
  }
  return bridged;
}

/** Intervals of messages in a report. */
const MAX_INTERVALS = 1_440;
/** Events that are read at a time. */
const EVENT_ROWS = 2_000;

/**
 * Counts a session's figures from the read models. A live stream is counted up to `until`. Shared rooms of other
 * channels, well-known bots and events that the account emitted itself count nothing.
 * @returns figures in the form of `stream_session:finalized`; persons by their keys
 */
export async function countSession(
  db: Queryable,
  account_id: string,
  streams: readonly CountedStream[],
  until: string,
  bots: Bots,
): Promise<SessionFigures> {
  const counted: Counted[] = [];
  for (const stream of streams) counted.push(await countStream(db, account_id, stream, until, bots));
  const raids = await countEvents(db, account_id, counted);
  const people = mergedPeople(counted);
  const samples = sampleFigures(counted.flatMap(({ samples: of }) => of.minutes));
  const parts = counted.map((one) => streamFigures(one));
  const sum = (name: 'total_messages' | 'emote_count' | 'gif_count') =>
    parts.reduce((total, one) => total + one[name], 0);
  const texts = (name: 'titles' | 'categories') => [...new Set(counted.flatMap((one) => [...one.samples[name]]))];
  const sums: StreamSums = {
    ...samples.sums,
    total_messages: sum('total_messages'),
    unique_chatters: people.length,
    ...(Object.fromEntries(EVENT_FIGURES.map((name) => [name, addedUp(parts.map((one) => one[name]))])) as EventCounts),
    emote_count: sum('emote_count'),
    gif_count: sum('gif_count'),
  };
  const titles = texts('titles');
  return {
    title: titles[0] ?? null,
    titles,
    categories: texts('categories'),
    duration_secs: secondsOf(streams, until),
    ...sums,
    streams: parts,
    top_chatters: people.slice(0, TOP_ROWS),
    top_emotes: topOf(counted.flatMap(({ emotes }) => emotes)),
    top_gifs: gifsOf(counted.flatMap(({ gifs }) => gifs)),
    viewer_markers: samples.viewer_markers,
    follower_markers: sessionFollowers(
      counted.map(({ stream, samples: of }) => ({ platform: stream.platform, minutes: of.minutes })),
    ),
    received_raids: raids,
    rows_counted: 0,
  };
}

interface Emote {
  id: string;
  name: string;
  url: string | null;
  provider: string;
  count: number;
}

interface Counted {
  stream: CountedStream;
  from: number;
  to: number;
  samples: Samples;
  people: { person_key: string; message_count: number }[];
  total_messages: number;
  emotes: Emote[];
  gifs: Emote[];
  interval_secs: number;
  message_counts: number[];
  events: EventCounts;
  bombs: GiftBombs;
}

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/**
 * The messages of a stream as rows `m`, those deleted by the minute; parameters $1 to $7. A message that names an
 * erased person has no content and no chat any more, and stays in the count.
 */
const IS_SHARED = `(content ->> 'is_shared_chat' is not distinct from 'true'
  or (content is null and exists (select from erased_shared_messages x where x.id = platform_chat_messages.id)))`;
const COLUMNS = 'person_key, content, has_emote, created_at, 1 as messages';
const ONES = 'account_id = $1 and platform = $2 and created_at >= $5::timestamptz and created_at < $6::timestamptz';
const MESSAGES = `(
  select ${COLUMNS} from platform_chat_messages
  where ${ONES} and not is_late and place >= $3::bigint and place < $4::bigint
    and (cardinality($7::text[]) = 0 or content is null or live_chat_id = any($7))
    and not ${IS_SHARED}
  union all
  select ${COLUMNS} from platform_chat_messages
  where ${ONES} and is_late
    and (cardinality($7::text[]) = 0 or content is null or live_chat_id = any($7))
    and not ${IS_SHARED}
  union all
  select nullif(person_key, '${NOBODY}'), case when emotes is not null then json_build_object('parts', emotes) end,
    emotes is not null, since, count
  from chat_minute_counts where account_id = $1 and platform = $2 and since >= $5::timestamptz
    and since < $6::timestamptz and (cardinality($7::text[]) = 0 or live_chat_id = '' or live_chat_id = any($7))) m`;
const BY_PERSON = `
  select g.person_key, g.count, coalesce(lower(u.username) = any($8::text[]), false)
    or coalesce(u.platform || ':' || u.platform_user_id = any($9::text[]), false) as is_bot
  from (select person_key, sum(messages)::bigint as count from ${MESSAGES} group by person_key) g
    left join platform_users u on u.account_id = $1 and u.person_key = g.person_key`;
const NO_BOT = '(m.person_key is null or m.person_key <> all($8::uuid[]))';
/** Uses of erased messages are of finished sessions alone. */
const BY_EMOTE = `
  select p ->> 'type' as type, p ->> 'id' as id, coalesce(p ->> 'provider', $2) as provider,
    max(p ->> 'text') as name, max(p ->> 'url') as url, sum(coalesce((p ->> 'count')::bigint, 1))::bigint as count
  from (
    select m.person_key, m.content, m.has_emote from ${MESSAGES}
    union all
    select nullif(person_key, '${NOBODY}'), json_build_object('parts', emotes), true
    from erased_uses where account_id = $1 and platform = $2 and since >= $5::timestamptz and since < $6::timestamptz
      and (cardinality($7::text[]) = 0 or live_chat_id = '' or live_chat_id = any($7))
  ) m cross join json_array_elements(m.content -> 'parts') p
  where (m.has_emote or m.content::text like '%"gif"%') and ${NO_BOT} and p ->> 'type' in ('emote', 'gif')
  group by 1, 2, 3`;
const BY_TIME = `
  select floor(extract(epoch from m.created_at - $5::timestamptz) / $9)::int as place, sum(messages)::bigint as count
  from ${MESSAGES} where ${NO_BOT} group by 1`;

async function countStream(
  db: Queryable,
  account_id: string,
  stream: CountedStream,
  until: string,
  known: Bots,
): Promise<Counted> {
  const [from, to] = [Date.parse(stream.started_at), Date.parse(stream.ended_at ?? until)];
  const values = [
    account_id,
    stream.platform,
    from * 1000 - LATE_MICROS,
    to * 1000 + LATE_MICROS,
    stream.started_at,
    stream.ended_at ?? until,
    stream.live_chat_ids,
  ];
  type ByPerson = { person_key: string | null; count: number; is_bot: boolean };
  const by_person = await db.query<ByPerson>(BY_PERSON, [...values, known.logins, known.ids], 'session-people');
  const counted = by_person.filter(({ is_bot }) => !is_bot);
  const bots = by_person.filter(({ is_bot }) => is_bot).map(({ person_key }) => person_key);
  const emotes = await db.query<Emote & { type: string }>(BY_EMOTE, [...values, bots], 'session-emotes');
  const seconds = Math.max(60, Math.ceil((to - from) / 1000));
  const interval_secs = 60 * Math.ceil(seconds / 60 / MAX_INTERVALS);
  const by_time = await db.query<{ place: number; count: number }>(
    BY_TIME,
    [...values, bots, interval_secs],
    'session-intervals',
  );
  const message_counts = Array.from({ length: Math.ceil(seconds / interval_secs) }, () => 0);
  for (const { place, count } of by_time) if (place < message_counts.length) message_counts[place] = count;
  const ofType = (wanted: string): Emote[] =>
    emotes.flatMap(({ type, count, ...one }) => (type === wanted ? [{ ...one, count }] : []));
  return {
    stream,
    from,
    to,
    samples: await samplesOf(db, account_id, stream, stream.ended_at ?? until),
    people: counted.flatMap(({ person_key, count }) =>
      person_key === null ? [] : [{ person_key, message_count: count }],
    ),
    total_messages: total(counted.map(({ count }) => count)),
    emotes: ofType('emote'),
    gifs: ofType('gif'),
    interval_secs,
    message_counts,
    events: noCounts(stream.platform),
    bombs: new Map(),
  };
}

type EventRow = Record<string, unknown> & {
  id: string;
  type: string;
  raw: string;
  created_at: string;
  /** Of an event that retention has deleted or an erasure has emptied. */
  counts: ReadCounts | null;
};

/** Adds the account's events to the streams in whose time they are; returns the raids among them, oldest first. */
async function countEvents(db: Queryable, account_id: string, counted: readonly Counted[]): Promise<Raid[]> {
  const raids: Raid[] = [];
  for (const platform of new Set(counted.map(({ stream }) => stream.platform))) {
    const streams = counted.filter(({ stream }) => stream.platform === platform);
    const from = new Date(Math.min(...streams.map((one) => one.from))).toISOString();
    const to = new Date(Math.max(...streams.map((one) => one.to))).toISOString();
    let after: { created_at: string; id: string } | undefined;
    for (;;) {
      // Versions 5 and 8 are those of events that the account emitted itself (`emittedId`).
      const rows = await db.query<EventRow>(
        `select * from (
           select id, type, raw::text as raw, created_at, null::jsonb as counts from platform_event_logs e
           where account_id = $1 and platform = $2 and type = any($3) and created_at >= $4::timestamptz
             and created_at < $5::timestamptz and get_byte(uuid_send(id), 6) >> 4 not in (5, 8)
             and ($6::timestamptz is null or (created_at, id) > ($6::timestamptz, $7::uuid))
             and not exists (select from counted_events c where c.account_id = $1 and c.id = e.id)
           union all
           select id, type, '' as raw, created_at, counts from counted_events
           where account_id = $1 and platform = $2 and created_at >= $4::timestamptz
             and created_at < $5::timestamptz
             and ($6::timestamptz is null or (created_at, id) > ($6::timestamptz, $7::uuid))
         ) counted order by created_at, id limit ${EVENT_ROWS}`,
        [account_id, platform, COUNTED_TYPES, from, to, after?.created_at ?? null, after?.id ?? null],
        'session-events',
      );
      for (const { type, raw, created_at, counts } of rows) {
        const at = Date.parse(created_at);
        const stream = streams.find((one) => at >= one.from && at < one.to);
        if (stream === undefined) continue;
        const read = counts ?? readCounts(type, raw);
        addCounts(stream.events, stream.bombs, read);
        const { raids: of_raid, raid_viewers = 0 } = read.figures;
        if (of_raid !== undefined)
          raids.push({
            platform,
            raided_at: shownInstant(created_at),
            viewers: raid_viewers,
            retained_viewers: retainedViewers(stream.samples.minutes, { at, viewers: raid_viewers }),
          });
      }
      after = rows.at(-1);
      if (rows.length < EVENT_ROWS) break;
    }
  }
  for (const { events, bombs } of counted) {
    if (events.gifted_subs !== null) events.gifted_subs += bombRecipients(bombs);
  }
  return raids.sort((a, b) => Date.parse(a.raided_at) - Date.parse(b.raided_at));
}

/** Samples that are read at a time. */
const SAMPLE_ROWS = 10_000;

async function samplesOf(
  db: Queryable,
  account_id: string,
  { platform, broadcast_ids, title, category, started_at }: CountedStream,
  to: string,
): Promise<Samples> {
  const samples: Samples = { minutes: [], titles: new Set(), categories: new Set(), title, category };
  if (title !== null) samples.titles.add(title);
  if (category !== null) samples.categories.add(category);
  let after: string | null = null;
  for (;;) {
    const rows: SampleRow[] = await db.query<SampleRow>(
      `select sampled_at, viewer_count, follower_count, stream_title, category from stream_samples
       where account_id = $1 and platform = $2 and broadcast_id = any($3) and sampled_at >= $4::timestamptz
         and sampled_at <= $5::timestamptz and ($6::timestamptz is null or sampled_at > $6::timestamptz)
       order by sampled_at limit ${SAMPLE_ROWS}`,
      [account_id, platform, broadcast_ids, started_at, to, after],
      'session-samples',
    );
    for (const row of rows) {
      samples.minutes.push({
        at: Date.parse(row.sampled_at),
        viewers: row.viewer_count,
        followers: row.follower_count,
        category: row.category,
      });
      samples.title = row.stream_title ?? samples.title;
      samples.category = row.category ?? samples.category;
      if (row.stream_title !== null) samples.titles.add(row.stream_title);
      if (row.category !== null) samples.categories.add(row.category);
    }
    after = rows.at(-1)?.sampled_at ?? null;
    if (rows.length < SAMPLE_ROWS) return samples;
  }
}

interface SampleRow {
  [column: string]: unknown;
  sampled_at: string;
  viewer_count: number;
  follower_count: number | null;
  stream_title: string | null;
  category: string | null;
}

function streamFigures({ stream, samples, events, ...counted }: Counted): StoredStream {
  const { live_chat_ids: _live_chat_ids, ...shown } = stream;
  const { sums, viewer_markers, follower_markers, categories } = sampleFigures(samples.minutes);
  return {
    ...shown,
    started_at: shownInstant(stream.started_at),
    ended_at: stream.ended_at === null ? null : shownInstant(stream.ended_at),
    title: samples.title,
    category: samples.category,
    duration_secs: secondsBetween(counted.from, stream.ended_at === null ? wholeMinute(counted.to) : counted.to),
    ...sums,
    total_messages: counted.total_messages,
    unique_chatters: counted.people.length,
    ...events,
    emote_count: total(counted.emotes.map(({ count }) => count)),
    gif_count: total(counted.gifs.map(({ count }) => count)),
    viewer_markers,
    follower_markers,
    categories,
    message_interval_secs: counted.interval_secs,
    message_counts: counted.message_counts,
    top_chatters: mergedPeople([{ stream, people: counted.people }]).slice(0, STREAM_TOP_ROWS),
    top_emotes: topOf(counted.emotes).slice(0, STREAM_TOP_ROWS),
    top_gifs: gifsOf(counted.gifs).slice(0, STREAM_TOP_ROWS),
  };
}

/** Everyone who wrote, most messages first. */
function mergedPeople(counted: readonly Pick<Counted, 'stream' | 'people'>[]): SessionFigures['top_chatters'] {
  const people = new Map<string, SessionFigures['top_chatters'][number]>();
  for (const { stream, people: of } of counted) {
    for (const { person_key, message_count } of of) {
      const known = people.get(person_key);
      if (known) known.message_count += message_count;
      else people.set(person_key, { platform: stream.platform, person_key, message_count });
    }
  }
  return [...people.values()].sort(
    (a, b) => b.message_count - a.message_count || (a.person_key < b.person_key ? -1 : 1),
  );
}

function topOf(all: readonly Emote[]): Emote[] {
  const emotes = new Map<string, Emote>();
  for (const one of all) {
    const key = JSON.stringify([one.provider, one.id]);
    const known = emotes.get(key);
    if (known) known.count += one.count;
    else emotes.set(key, { ...one });
  }
  return [...emotes.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, TOP_ROWS);
}

const gifsOf = (gifs: readonly Emote[]): SessionFigures['top_gifs'] =>
  topOf(gifs).map(({ name: alt, ...gif }) => ({ ...gif, alt }));

const wholeMinute = (at: number): number => Math.floor(at / 60_000) * 60_000;
const secondsBetween = (from: number, to: number): number => Math.max(0, Math.floor((to - from) / 1000));

/** Seconds from the first start to the last end, gaps included; a live session ends at its newest whole minute. */
function secondsOf(streams: readonly CountedStream[], until: string): number {
  const from = Math.min(...streams.map(({ started_at }) => Date.parse(started_at)));
  const is_live = streams.some(({ ended_at }) => ended_at === null);
  return secondsBetween(from, is_live ? wholeMinute(Date.parse(until)) : Date.parse(until));
}
