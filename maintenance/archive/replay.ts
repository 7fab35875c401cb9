import { TOPICS } from '../../domain/common/records';
import type { Broker } from '../../engines/broker/port';
import type { EventStore, StoredEvent } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord, RecordLog } from '../../engines/records/port';
import { describe } from '../../projections/runtime/drive/failures';
import { readStored, type ReadArchived } from '../../projections/runtime/rebuild/source';

/** Bound of a replay: an offset or revision, or a time (RFC 3339 UTC with microseconds). */
export type Place = { number: number } | { time: string };

export interface ReplayRange {
  /** Inclusive; absent: the beginning. */
  from?: Place;
  /** Exclusive; absent: the current end. */
  to?: Place;
}

export interface ReplayDeps {
  db: Queryable;
  broker: Broker;
  records: Pick<RecordLog, 'decode'>;
  events: EventStore;
  readArchived?: ReadArchived;
}

export interface TopicReplay extends ReplayRange {
  topic: string;
  /** Only this partition. */
  partition?: number;
  account_id?: string;
  types?: readonly string[];
  /** Include repeated deliveries, which had no effect. */
  duplicates?: boolean;
  onProgress?: (progress: { done: number; total: number }) => void;
}

/** A record of a replay; an undecodable one has only its position and the error. */
export type ReplayedRecord =
  | (LoggedRecord & { appended_at: string })
  | { topic: string; partition: number; offset: number; appended_at: string; error: string };

/**
 * Records of a topic from archive and log, partition by partition in order. Erased persons read as erased. Without
 * `duplicates` it skips records whose external id counted for another record, and records that the ledger rejected by
 * their bytes.
 * @throws HistoryGone when records at its beginning no longer exist
 */
export async function* replayTopic(deps: ReplayDeps, replay: TopicReplay): AsyncGenerator<ReplayedRecord[]> {
  const { topic, from, to, partition: only, account_id, types } = replay;
  const first = from && 'number' in from ? from.number : 0;
  const ranges = [...(await deps.broker.bounds(topic))]
    .filter(([partition]) => only === undefined || partition === only)
    .map(([partition, { next }]) => ({
      partition,
      first,
      end: to && 'number' in to ? Math.min(to.number, next) : next,
    }));
  if (only !== undefined && ranges.length === 0) throw new Error(`there is no partition ${only} of ${topic}`);
  const total = ranges.reduce((sum, { end }) => sum + Math.max(0, end - first), 0);
  const since = from && 'time' in from ? from.time : undefined;
  const until = to && 'time' in to ? to.time : undefined;
  let done = 0;
  for (const { partition, end } of ranges) {
    for await (const stored of readStored(deps, topic, partition, first, end)) {
      const wanted = stored.filter(({ appended_at }) => isInWindow(appended_at, since, until));
      const times = new Map(wanted.map(({ offset, appended_at }) => [offset, appended_at]));
      const { records, undecodable } = await deps.records.decode(wanted);
      const matching = records.filter(
        (record) =>
          (!account_id || record.account_id === account_id) && (!types?.length || types.includes(record.type)),
      );
      const losers = replay.duplicates ? new Set<string>() : await duplicatesAmong(deps.db, topic, matching);
      const rows: ReplayedRecord[] = matching
        .filter(({ id }) => !losers.has(id))
        .map((record) => ({ ...record, appended_at: times.get(record.offset)! }));
      for (const { record, error } of undecodable) {
        rows.push({ topic, partition, offset: record.offset, appended_at: record.appended_at, error: describe(error) });
      }
      if (undecodable.length > 0) rows.sort((a, b) => a.offset - b.offset);
      if (rows.length > 0) yield rows;
      done += stored.length;
      replay.onProgress?.({ done, total });
    }
  }
}

/** A position as a number that grows with the log; of `commit/prepare` of KurrentDB the place of the event itself. */
export const placeOfEvent = (position: string): number => Number(position.slice(position.indexOf('/') + 1));

type EventRange = ReplayRange & { types?: readonly string[] };

/** Domain events of one stream, by revision, or of all (`stream` absent), in commit order. */
export async function* replayEvents(
  { events }: Pick<ReplayDeps, 'events'>,
  { stream, ...range }: EventRange & { stream?: string },
): AsyncGenerator<StoredEvent[]> {
  if (stream !== undefined) {
    const found = await events.read(stream, 0, { ips: true });
    if (found.length === 0) throw new Error(`there is no topic and no stream ${stream}`);
    yield found.filter(inRange(range, ({ revision }) => revision));
    return;
  }
  const { types } = range;
  const wanted = inRange(range, ({ position }) => placeOfEvent(position));
  for await (const batch of events.readAll(null, { ips: true, ...(types?.length && { types }) })) {
    const found = batch.events.filter(wanted);
    if (found.length > 0) yield found;
  }
}

/** An event, and its place among those of its account. */
export interface AccountEvent {
  event: StoredEvent;
  place: AccountPlace;
}

/** A place in the read model `account-events`, and the event there. A rebuild gives events other places. */
export interface AccountPlace {
  place: number;
  stream: string;
  revision: number;
}

/** The read model was rebuilt meanwhile: places from before do not show which events were read. */
export class PlacesRebuilt extends Error {
  constructor() {
    super('the read model account-events was rebuilt since this began: begin again, without --resume');
    this.name = 'PlacesRebuilt';
  }
}

/**
 * Domain events of one account behind a place, as far as the read model `account-events` has them: in commit order,
 * but an event whose dead letter was retried has a later place.
 * @throws PlacesRebuilt where another event, or none, is at the place `after`, also between two pages
 */
export async function* replayAccount(
  deps: Pick<ReplayDeps, 'events' | 'db'>,
  { account, after, ...range }: EventRange & { account: string; after?: AccountPlace },
): AsyncGenerator<AccountEvent[]> {
  const wanted = inRange(range, ({ position }) => placeOfEvent(position));
  for await (const events of eventsOfAccount(deps, account, after)) {
    const found = events.filter(({ event }) => wanted(event));
    if (found.length > 0) yield found;
  }
}

function inRange({ from, to, types }: EventRange, number: (event: StoredEvent) => number) {
  const since = from && 'time' in from ? from.time : undefined;
  const until = to && 'time' in to ? to.time : undefined;
  const inNumbers = (event: StoredEvent) =>
    (!from || !('number' in from) || number(event) >= from.number) &&
    (!to || !('number' in to) || number(event) < to.number);
  return (event: StoredEvent) =>
    isInWindow(event.recorded_at, since, until) && (!types?.length || types.includes(event.type)) && inNumbers(event);
}

/** Events of an account that are read at a time. */
const ACCOUNT_PAGE = 500;

async function* eventsOfAccount(
  { events, db }: Pick<ReplayDeps, 'events' | 'db'>,
  account: string,
  from: AccountPlace | undefined,
): AsyncGenerator<AccountEvent[]> {
  for (let after = from; ;) {
    const found_places = await db.query<AccountPlace & Record<string, unknown>>(
      `select place, stream, revision from account_events where account_id = $1 and place >= $2
       order by place limit $3`,
      [account, after?.place ?? 0, ACCOUNT_PAGE + 1],
    );
    const places = found_places.map(({ place, ...of }) => ({ ...of, place: Number(place) }));
    if (after !== undefined && !isSamePlace(places.shift(), after)) throw new PlacesRebuilt();
    const spans = new Map<string, { from: number; to: number }>();
    for (const { stream, revision } of places) {
      const { from, to } = spans.get(stream) ?? { from: revision, to: revision };
      spans.set(stream, { from: Math.min(from, revision), to: Math.max(to, revision) });
    }
    const found = new Map<string, StoredEvent>();
    for (const [stream, { from, to }] of spans) {
      for (const event of await events.read(stream, from, { limit: to - from + 1, ips: true }))
        found.set(`${stream} ${event.revision}`, event);
    }
    yield places.flatMap((place) => {
      const event = found.get(`${place.stream} ${place.revision}`);
      return event === undefined ? [] : [{ event, place }];
    });
    if (places.length < ACCOUNT_PAGE) return;
    after = places.at(-1)!;
  }
}

const isSamePlace = (found: AccountPlace | undefined, { place, stream, revision }: AccountPlace): boolean =>
  found !== undefined && found.place === place && found.stream === stream && Number(found.revision) === revision;

/** Compares times whose number of fractional digits differs between engines: as instants, then by digits. */
function isInWindow(time: string, since: string | undefined, until: string | undefined): boolean {
  return (
    (since === undefined || compareTimes(time, since) >= 0) && (until === undefined || compareTimes(time, until) < 0)
  );
}

function compareTimes(a: string, b: string): number {
  const [left, right] = [digits(a), digits(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Converts `2026-01-02T03:04:05.6Z` to a sortable text. */
const digits = (time: string) => {
  const [seconds, fraction = ''] = time.replace(/Z$/, '').split('.');
  return `${seconds}.${fraction.padEnd(9, '0')}`;
};

/** Projections whose ledger decides the duplicates of a topic. */
const JUDGES: Readonly<Record<string, string>> = {
  [TOPICS.platform_events]: 'event-log',
  [TOPICS.chat_events]: 'chat-live',
  [TOPICS.stream_samples]: 'stream-samples',
  [TOPICS.webhook_events]: 'payment-objects',
};

/**
 * Records whose external id counted for another record, and records without a signed id that the topic's projection has
 * passed without an entry in the ledger. Records not yet applied by a projector count as new, because parked ones may
 * be applied later.
 */
async function duplicatesAmong(db: Queryable, topic: string, records: readonly LoggedRecord[]): Promise<Set<string>> {
  const named = records.filter(({ external_id }) => external_id !== null && external_id !== '');
  const judge = JUDGES[topic];
  if (named.length === 0 || judge === undefined) return new Set();
  const rows = await db.query<{ id: string }>(
    `select r.id from unnest($1::uuid[], $2::uuid[], $3::text[], $5::boolean[], $6::integer[], $7::bigint[])
       r (id, account_id, external_id, unsigned, partition, "offset")
     left join ledger l on l.account_id = r.account_id and l.external_id = r.external_id
       and l.projection = $8 and l.topic = $4
     where l.record_id <> r.id
       or (l.record_id is null and r.unsigned
         and exists (select from checkpoints c where c.projection = $8 and c.source = $4
           and c.partition = r.partition and nullif(c.position, '')::bigint > r."offset")
         and not exists (select from dead_letters d where d.projection = $8 and d.source = $4
           and d.partition = r.partition and d.position = r."offset"::text))`,
    [
      named.map(({ id }) => id),
      named.map((record) => record.account_id),
      named.map(({ external_id }) => external_id),
      topic,
      named.map(({ same_raw, former_id }) => same_raw !== undefined || former_id !== undefined),
      named.map(({ partition }) => partition),
      named.map(({ offset }) => offset),
      judge,
    ],
  );
  return new Set(rows.map(({ id }) => id));
}
