import { ERASED_ACT } from '../../domain/chat/chat-history';
import type { ChatModeration } from '../../domain/chat/chat-messages';
import { actOf, logEntry } from '../../domain/chat/chat-push';
import { ERASED_RAW } from '../../domain/common/records';
import { textArray, type Queryable } from '../../engines/postgres/port';
import { exactMicros, shownInstant } from '../../lib/time/instants';
import type { ChatEntry } from './chat';

/** Longest time between two reports of one act: our own, and each of the platform's. */
const TWINS_WITHIN_MICROS = 60_000_000;
/** Platforms compute the end of a timeout from times of their own. */
const ENDS_WITHIN_MICROS = 5_000_000;
/** Acts that the platform repeats in other words, each by its target or message: the kind of the act. */
const REPEATED: ReadonlyMap<string, string> = new Map([
  ...['ban', 'timeout', 'unban', 'delete'].map((kind) => [kind, kind] as const),
  ['untimeout', 'unban'],
]);
/** An act between two alike ones, after which the second is another act. */
const ENDED_BY: Readonly<Record<string, readonly string[]>> = {
  ban: ['unban'],
  timeout: ['unban'],
  unban: ['ban', 'timeout'],
};

const COLUMNS = `account_id, place, id, created_at, platform, action, person_key, message_id, effect, is_listed, twin_of,
  content`;
const INSERT = `insert into moderation_log (${COLUMNS})
  select account_id, place, id, created_at, platform, action, person_key, message_id, effect, is_listed, twin_of, content
  from json_to_recordset($1::json) as l (account_id uuid, place bigint, id uuid, created_at timestamptz, platform text,
    action text, person_key uuid, message_id text, effect text, is_listed boolean, twin_of uuid, content json)`;
const EARLIER = `
  select l.id, l.account_id, l.platform, l.action, l.person_key, l.message_id, l.created_at, l.content
  from (
    select l.* from (
      select distinct unnest($1::text[])::uuid as account_id, unnest($2::text[])::uuid as person_key
    ) asked join moderation_log l using (account_id, person_key)
    where l.message_id is null
    union all
    select l.* from (select distinct unnest($1::text[])::uuid as account_id, unnest($3::text[]) as message_id) asked
      join moderation_log l using (account_id, message_id)) l
  where l.is_listed and l.created_at between $4::timestamptz - interval '60 s' and $5::timestamptz + interval '60 s'
  order by l.place`;

/** An act as its twin is found. */
interface Act {
  id: string;
  account_id: string;
  platform: string;
  channel_id: string;
  /** The platform's id of the room of a shared chat in which it was done; null of the channel's own. */
  room: string | null;
  action: string;
  person_key: string | null;
  message_id: string | null;
  micros: number;
  /** Microseconds since 1970; null where it has no end. */
  ends: number | null;
}

/**
 * Stores the moderators' acts among the entries. An act that a second record repeats is one entry of the log; what the
 * second one adds is found by `twin_of`.
 * @returns the ids of records that repeat an act
 */
export async function writeModeration(entries: readonly ChatEntry[], tx: Queryable): Promise<Set<string>> {
  const acts = entries.flatMap((entry) => (entry.read?.kind === 'moderation' ? [{ entry, read: entry.read }] : []));
  const erased = entries.filter(isErasedAct).map(erasedRowOf);
  if (acts.length + erased.length === 0) return new Set();
  const known = new Map<string, Act[]>();
  for (const act of await earlierActs(acts, tx)) keep(known, act);
  const twins = new Set<string>();
  const rows = acts.map(({ entry, read }) => {
    const act = repeatable(entry, read);
    const first = act && known.get(keyOf(act))?.find((one) => areTwins(one, act) && !isEndedBetween(known, one, act));
    if (first) twins.add(entry.id);
    else if (act) keep(known, act);
    return rowOf(entry, read, first?.id ?? null);
  });
  await tx.query(INSERT, [JSON.stringify([...rows, ...erased])], 'moderation-log-insert');
  return twins;
}

/** Whether the record is an act that an erasure made unreadable; its type stays. */
export const isErasedAct = ({ record }: ChatEntry): boolean =>
  record.raw === ERASED_RAW && record.type === `${record.platform}:moderation`;

function erasedRowOf({ id, account_id, place, created_at, record }: ChatEntry): object {
  const nothing = { person_key: null, message_id: null, effect: null, twin_of: null, content: {} };
  const { platform } = record;
  return { account_id, place, id, created_at, platform, action: ERASED_ACT, is_listed: true, ...nothing };
}

function rowOf(entry: ChatEntry, read: ChatModeration, twin_of: string | null): object {
  const { id, account_id, place, created_at, record } = entry;
  return {
    account_id,
    place,
    id,
    created_at,
    platform: record.platform,
    action: read.action,
    person_key: targetKey(entry, read),
    message_id: read.message_id,
    effect: effectOf(read),
    is_listed: twin_of === null,
    twin_of,
    content: {
      ...logEntry(read, shownInstant(created_at)),
      channel_id: read.channel_id,
      ...(read.ban_id !== null && { ban_id: read.ban_id }),
    },
  };
}

/** Effect of the act on messages: `delete` to one, `clear` to all of the target's before it. */
function effectOf(read: ChatModeration): 'delete' | 'clear' | null {
  const act = actOf(read);
  if (act === 'delete') return read.message_id === null ? null : 'delete';
  return (act === 'ban' || act === 'timeout') && read.target?.id ? 'clear' : null;
}

/** The key of the target; null where the record is about somebody else. */
const targetKey = ({ record }: ChatEntry, { target }: ChatModeration): string | null =>
  target?.id ? (record.subject_key ?? null) : null;

function repeatable(entry: ChatEntry, read: ChatModeration): Act | null {
  const { id, account_id, micros, record } = entry;
  const { action, channel_id, message_id } = read;
  const person_key = targetKey(entry, read);
  if (!REPEATED.has(actOf(read)) || (person_key ?? message_id) === null) return null;
  const room = roomOf(action, read.shared_chat?.channel.id);
  const ends = endOf(micros, read);
  return { id, account_id, platform: record.platform, channel_id, room, action, person_key, message_id, micros, ends };
}

const roomOf = (action: string, source: string | null | undefined): string | null =>
  actOf({ action }) === action ? null : (source ?? '');

/** A deleted message, which not every platform names the author of, or the target. */
function keyOf({ account_id, platform, channel_id, room, action, person_key, message_id }: Act, kind = kindOf(action)) {
  const place = room === null ? [channel_id] : [channel_id, 'room', room];
  return [account_id, platform, ...place, kind, message_id ?? person_key].join('\n');
}

function kindOf(action: string): string {
  const act = actOf({ action });
  return REPEATED.get(act) ?? act;
}

/** When a timeout ends; null of other acts. */
function endOf(micros: number, { ends_at, duration_secs }: Pick<ChatModeration, 'ends_at' | 'duration_secs'>) {
  const end = ends_at === null ? null : exactMicros(ends_at);
  return end ?? (duration_secs === null ? null : micros + duration_secs * 1_000_000);
}

function keep(known: Map<string, Act[]>, act: Act): void {
  const acts = known.get(keyOf(act));
  if (acts) acts.push(act);
  else known.set(keyOf(act), [act]);
}

const areTwins = (one: Act, other: Act): boolean =>
  Math.abs(one.micros - other.micros) <= TWINS_WITHIN_MICROS &&
  (one.ends === null || other.ends === null || Math.abs(one.ends - other.ends) <= ENDS_WITHIN_MICROS);

/** Whether an opposite act lies between two acts. */
function isEndedBetween(known: ReadonlyMap<string, Act[]>, one: Act, other: Act): boolean {
  const [from, to] = [Math.min(one.micros, other.micros), Math.max(one.micros, other.micros)];
  const opposites = ENDED_BY[kindOf(one.action)] ?? [];
  return opposites.some((kind) => known.get(keyOf(one, kind))?.some(({ micros }) => micros > from && micros < to));
}

type Content = Pick<ChatModeration, 'channel_id' | 'ends_at' | 'duration_secs'> & { source_channel_id: string | null };

async function earlierActs(acts: readonly { entry: ChatEntry; read: ChatModeration }[], tx: Queryable): Promise<Act[]> {
  const asked = acts.flatMap(({ entry, read }) => {
    const act = repeatable(entry, read);
    return act === null ? [] : [{ act, created_at: entry.created_at }];
  });
  if (asked.length === 0) return [];
  const times = asked.map(({ act, created_at }) => ({ micros: act.micros, created_at }));
  times.sort((one, other) => one.micros - other.micros);
  type Row = Omit<Act, 'channel_id' | 'room' | 'micros' | 'ends'> & { created_at: string; content: string };
  const rows = await tx.query<Row>(
    EARLIER,
    [
      textArray(asked.map(({ act }) => act.account_id)),
      textArray(asked.map(({ act }) => act.person_key)),
      textArray(asked.map(({ act }) => act.message_id)),
      times[0]!.created_at,
      times.at(-1)!.created_at,
    ],
    'moderation-log-earlier',
  );
  return rows.map(({ content, created_at, ...row }) => {
    const micros = exactMicros(created_at)!;
    const { channel_id, source_channel_id, ...length } = JSON.parse(content) as Content;
    const room = roomOf(row.action, source_channel_id);
    return { ...row, channel_id, room, micros, ends: endOf(micros, length) };
  });
}
