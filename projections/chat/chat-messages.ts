import { LATE_MICROS, NOBODY } from '../../domain/chat/chat-history';
import type { ChatMessage } from '../../domain/chat/chat-messages';
import { shownMessage } from '../../domain/chat/chat-push';
import { BinaryRows, textArray, type Queryable } from '../../engines/postgres/port';
import { allSettledOrThrow } from '../../lib/async/all-settled';
import { tally } from '../../kernel/tally';
import type { ChatEntry } from './chat';

/** Rows from which on a COPY is cheaper; its plan is not cached. */
const COPY_FROM = 32;
const COLUMNS = `account_id, platform, place, id, created_at, person_key, message_id, live_chat_id, message, content,
  is_first, is_paid, has_link, has_emote, is_late`;
const COPY = `copy platform_chat_messages (${COLUMNS}) from stdin (format binary)`;
const INSERT = `insert into platform_chat_messages (${COLUMNS})
  select account_id, platform, place, id, created_at, person_key, message_id, live_chat_id, message, content,
    is_first, is_paid, has_link, has_emote, is_late
  from json_to_recordset($1::json) as m (account_id uuid, platform text, place bigint, id uuid, created_at timestamptz,
    person_key uuid, message_id text, live_chat_id text, message text, content json, is_first boolean, is_paid boolean,
    has_link boolean, has_emote boolean, is_late boolean)`;
const COUNT = `
  insert into chat_message_counts as c (account_id, platform, day, count)
    select unnest($1::text[])::uuid, unnest($2::text[]), unnest($3::text[])::date, unnest($4::bigint[]) order by 1, 2, 3
    on conflict (account_id, platform, day) do update set count = c.count + excluded.count`;

const COUNT_ERASED = `
  insert into chat_minute_counts as k (account_id, platform, since, live_chat_id, person_key, count)
    select account_id, platform, greatest(date_trunc('minute', created_at), (
      select max(edge.at) from channel_status o cross join lateral (values (o.started_at), (o.ended_at)) edge (at)
      where o.account_id = e.account_id and o.platform = e.platform
        and edge.at between date_trunc('minute', e.created_at) and e.created_at
    )), '', person_key, count(*)
    from json_to_recordset($1::json) e (id uuid, account_id uuid, platform text, created_at timestamptz,
      person_key uuid)
    where not exists (select from erased_shared_messages x where x.id = e.id)
    group by 1, 2, 3, 5 order by 1, 2, 3, 5
  on conflict (account_id, platform, since, live_chat_id, person_key) do update set count = k.count + excluded.count`;

/**
 * Counts the messages of erased persons by minute, as their erasure does with stored ones: without those of other
 * channels' rooms.
 */
export async function countErased(entries: readonly ChatEntry[], tx: Queryable): Promise<void> {
  const rows = entries.flatMap(({ record, read, id, account_id, created_at }) =>
    read === null && isUnreadable(record) && record.subject_erased === true
      ? [{ id, account_id, platform: record.platform, created_at, person_key: record.subject_key ?? NOBODY }]
      : [],
  );
  if (rows.length > 0) await tx.query(COUNT_ERASED, [JSON.stringify(rows)], 'chat-erased-count');
}

/** Whether the record is a message whose row exists: the author's own key is not erased. */
export const hasMessageRow = ({ record, read }: ChatEntry): boolean =>
  read === null ? isUnreadable(record) && record.subject_erased !== true : read.kind === 'message';

/** A message that an erasure made unreadable; its type stays. */
const isUnreadable = ({ type, platform, subject_key }: ChatEntry['record']): boolean =>
  subject_key !== undefined && type === `${platform}:chat`;

/** Stores the messages among the entries, and counts them by account, platform and day. */
export async function writeMessages(
  entries: readonly ChatEntry[],
  firsts: ReadonlySet<string>,
  tx: Queryable,
): Promise<void> {
  const rows = entries.filter(hasMessageRow).map((entry) => rowOf(entry, firsts.has(entry.id)));
  if (rows.length === 0) return;
  await allSettledOrThrow([
    rows.length < COPY_FROM
      ? tx.query(INSERT, [JSON.stringify(rows)], 'chat-messages-insert')
      : tx.query(COPY, [copied(rows)]),
    tx.query(COUNT, countsOf(rows), 'chat-messages-count'),
  ]);
}

interface MessageRow {
  account_id: string;
  platform: string;
  place: number;
  id: string;
  created_at: string;
  micros: number;
  person_key: string | null;
  message_id: string | null;
  live_chat_id: string | null;
  message: string;
  /** JSON of what is shown besides the columns; null of a message that names an erased person. */
  content: object | null;
  is_first: boolean;
  is_paid: boolean;
  has_link: boolean;
  has_emote: boolean;
  is_late: boolean;
}

function rowOf(entry: ChatEntry, is_first: boolean): MessageRow {
  const { record, read, account_id, place, id, created_at, micros } = entry;
  const base = { account_id, platform: record.platform, place, id, created_at, micros, is_first };
  const is_late = Math.abs(place - micros) > LATE_MICROS;
  if (read?.kind !== 'message') {
    const nothing = { message_id: null, live_chat_id: null, message: '', content: null };
    const flags = { is_paid: false, has_link: false, has_emote: false, is_late };
    return { ...base, person_key: authorKey(entry), ...nothing, ...flags };
  }
  return {
    ...base,
    person_key: authorKey(entry),
    message_id: read.message_id,
    live_chat_id: read.live_chat_id,
    message: read.text,
    content: contentOf(read),
    is_paid: read.paid !== null,
    has_link: read.parts.some(({ type }) => type === 'link'),
    has_emote: read.parts.some(({ type }) => type === 'emote'),
    is_late,
  };
}

/** The key of a message's author; null of an anonymous message, whose record is about whom it mentions. */
export function authorKey({ record, read }: ChatEntry): string | null {
  const has_author = read === null ? isUnreadable(record) : read.kind === 'message' && Boolean(read.author?.id);
  return has_author ? (record.subject_key ?? null) : null;
}

/** The message as it is shown, without what the columns hold or the parts repeat. */
function contentOf(read: ChatMessage): object {
  const {
    platform: _platform,
    platform_message_id: _message_id,
    live_chat_id: _live_chat_id,
    message: _message,
    emotes: _emotes,
    created_at: _created_at,
    ...content
  } = shownMessage(read, '');
  return content;
}

function copied(rows: readonly MessageRow[]): Buffer {
  const out = new BinaryRows(15);
  for (const row of rows) {
    out.row();
    out.uuid(row.account_id);
    out.text(row.platform);
    out.bigint(row.place);
    out.uuid(row.id);
    out.instant(row.micros);
    if (row.person_key === null) out.null();
    else out.uuid(row.person_key);
    for (const text of [row.message_id, row.live_chat_id, row.message]) out.text(text);
    out.text(row.content === null ? null : JSON.stringify(row.content));
    for (const flag of [row.is_first, row.is_paid, row.has_link, row.has_emote, row.is_late]) out.boolean(flag);
  }
  return out.end();
}

const DAY = '2026-01-01'.length;

function countsOf(rows: readonly MessageRow[]): unknown[] {
  const counted = tally(
    rows,
    ({ account_id, created_at, platform }) => `${account_id}${created_at.slice(0, DAY)}${platform}`,
  );
  return [
    textArray(counted.map(({ row }) => row.account_id)),
    textArray(counted.map(({ row }) => row.platform)),
    textArray(counted.map(({ row }) => row.created_at.slice(0, DAY))),
    counted.map(({ count }) => count),
  ];
}
