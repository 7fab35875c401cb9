import type { ChatModeration } from '../../domain/chat/chat-messages';
import { actOf, isLogged, logEntry } from '../../domain/chat/chat-push';
import { textArray, type Queryable } from '../../engines/postgres/port';
import { exactMicros, shownInstant } from '../../lib/time/instants';
import type { ChatEntry } from './chat';

/** Two records of one act, our own and the platform's, are at most so far apart in time. */
const TWINS_WITHIN_MICROS = 30_000_000;
/** Platforms compute the length of a timeout from times of their own. */
const ROUNDED_SECONDS = 2;
/** Acts that the platform repeats in other words, each by its target or message. */
const REPEATED: ReadonlySet<string> = new Set(['ban', 'timeout', 'unban', 'untimeout', 'delete']);

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
  where l.is_listed and l.created_at between $4::timestamptz - interval '30 s' and $5::timestamptz + interval '30 s'
  order by l.place`;

/** An act as its twin is found. */
interface Act {
  id: string;
  account_id: string;
  platform: string;
  action: string;
  person_key: string | null;
  message_id: string | null;
  micros: number;
  moderator_id: string | null;
  duration_secs: number | null;
}

/**
 * Stores the moderators' acts among the entries. An act that a second record repeats is one entry of the log; what the
 * second one adds is found by `twin_of`.
 * @returns the ids of records that repeat an act
 */
export async function writeModeration(entries: readonly ChatEntry[], tx: Queryable): Promise<Set<string>> {
  const acts = entries.flatMap((entry) => (entry.read?.kind === 'moderation' ? [{ entry, read: entry.read }] : []));
  if (acts.length === 0) return new Set();
  const known = new Map<string, Act[]>();
  for (const act of await earlierActs(acts, tx)) keep(known, act);
  const twins = new Set<string>();
  const rows = acts.map(({ entry, read }) => {
    const act = repeatable(entry, read);
    const first = act && known.get(keyOf(act))?.find((one) => areTwins(one, act));
    if (first) twins.add(entry.id);
    else if (act) keep(known, act);
    return rowOf(entry, read, first?.id ?? null);
  });
  await tx.query(INSERT, [JSON.stringify(rows)], 'moderation-log-insert');
  return twins;
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
    is_listed: twin_of === null && isLogged(read),
    twin_of,
    content: logEntry(read, shownInstant(created_at)),
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
  const { action, message_id, duration_secs, moderator } = read;
  const person_key = targetKey(entry, read);
  if (!REPEATED.has(actOf(read)) || !isLogged(read) || (person_key ?? message_id) === null) return null;
  const act = { id, account_id, platform: record.platform, action, person_key, message_id, micros, duration_secs };
  return { ...act, moderator_id: moderator?.id ?? null };
}

/** A deleted message, which not every platform names the author of, or the target. */
const keyOf = ({ account_id, platform, action, person_key, message_id }: Act): string =>
  [account_id, platform, action, message_id ?? person_key].join('\n');

function keep(known: Map<string, Act[]>, act: Act): void {
  const acts = known.get(keyOf(act));
  if (acts) acts.push(act);
  else known.set(keyOf(act), [act]);
}

const areTwins = (one: Act, other: Act): boolean =>
  agree(one.duration_secs, other.duration_secs, (some, more) => Math.abs(some - more) <= ROUNDED_SECONDS) &&
  agree(one.moderator_id, other.moderator_id, (some, more) => some === more) &&
  Math.abs(one.micros - other.micros) <= TWINS_WITHIN_MICROS;

const agree = <T>(one: T | null, other: T | null, alike: (one: T, other: T) => boolean): boolean =>
  one === null || other === null || alike(one, other);

async function earlierActs(acts: readonly { entry: ChatEntry; read: ChatModeration }[], tx: Queryable): Promise<Act[]> {
  const asked = acts.flatMap(({ entry, read }) => {
    const act = repeatable(entry, read);
    return act === null ? [] : [{ act, created_at: entry.created_at }];
  });
  if (asked.length === 0) return [];
  const times = asked.map(({ act, created_at }) => ({ micros: act.micros, created_at }));
  times.sort((one, other) => one.micros - other.micros);
  const rows = await tx.query<Omit<Act, 'micros'> & { created_at: string; content: string }>(
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
    const { moderator_id, duration_secs } = JSON.parse(content) as Pick<Act, 'moderator_id' | 'duration_secs'>;
    return { ...row, micros: exactMicros(created_at)!, moderator_id, duration_secs };
  });
}
