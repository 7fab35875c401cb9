import { chatChannel, type ChatRecord, readChatRecord } from '../../domain/chat/chat-messages';
import { chatPush } from '../../domain/chat/chat-push';
import { START_AUTOMATION } from '../../domain/automation/automation-runs';
import { TOPICS } from '../../domain/common/records';
import { textArray, type Queryable } from '../../engines/postgres/port';
import { holdable } from '../../kernel/texts';
import type { LoggedRecord } from '../../engines/records/port';
import { type ApplyMode, type ChannelMessage, projection, topic } from '../../kernel/projection';
import { allSettledOrThrow } from '../../lib/async/all-settled';
import { exactMicros, shownInstant } from '../../lib/time/instants';
import { firstLineStarts } from '../../services/automation/runs/first-lines';
import { countErased, hasMessageRow, writeMessages } from './chat-messages';
import { isErasedAct, writeModeration } from './moderation-log';
import { separate } from './places';
import { countAuthors } from './platform-users';

/** A record of a chat with its place in the account's history. */
export interface ChatEntry {
  record: LoggedRecord;
  /** In lower case. */
  id: string;
  account_id: string;
  /** Null when erased, or of a release before the first version. */
  read: ChatRecord | null;
  /** Own time in microseconds since 1970, raised to the next free one of the account. */
  place: number;
  created_at: string;
  /** `created_at` in microseconds since 1970. */
  micros: number;
}

/**
 * The history of an account's chats, their people and the log of their moderation (spec extra facts §11), and their
 * messages on `chat:<account_id>` (doc3 §6.4): all of one decoding and one ledger entry a record.
 */
export const chatLive = projection({
  name: 'chat-live',
  version: 9,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [
    ...['platform_chat_messages', 'moderation_log', 'platform_users', 'chat_message_counts', 'chat_heads'],
    // Filled by retention, erasures and erased records.
    'chat_minute_counts',
  ],
  jobs: [START_AUTOMATION],
  late_indexes: [
    'platform_chat_messages_person',
    'platform_chat_messages_message',
    'platform_chat_messages_paid',
    'platform_chat_messages_late',
    'platform_chat_messages_live_chat',
  ],
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]> {
    const applied = (id: string) => mode.applied?.has(id) === true;
    const fresh = await placed((mode.again ?? true) ? await withoutStored(batch, tx) : batch, tx);
    // After a restore the ledger may name records whose rows are not there yet.
    const entries = fresh.filter((entry) => hasRow(entry) || !applied(entry.id));
    if (entries.length === 0) return [];
    const firsts = await countAuthors(entries, tx);
    const twins = await writeModeration(entries, tx);
    // Of several failures the first statement's is the cause.
    await allSettledOrThrow([
      writeMessages(entries, firsts, tx),
      countErased(entries, tx),
      tx.query(SET_HEADS, headsOf(entries), 'chat-heads-set'),
    ]);
    if (mode.rebuilding || mode.loading) return [];
    const first_lines = entries.flatMap(({ id, record }) => (firsts.has(id) && !applied(id) ? [record] : []));
    if (mode.enqueue !== undefined && first_lines.length > 0) {
      const starts = await firstLineStarts(first_lines, tx, Date.now());
      if (starts.length > 0) await mode.enqueue(tx, starts);
    }
    return entries.flatMap((entry) => (twins.has(entry.id) || applied(entry.id) ? [] : messagesOf(entry, firsts)));
  },
});

function messagesOf({ record, id, read, account_id }: ChatEntry, firsts: ReadonlySet<string>): ChannelMessage[] {
  if (read === null) return [];
  const is_first_message = firsts.has(id);
  const facts = { id, account_id: record.account_id, occurred_at: shownInstant(record.occurred_at), is_first_message };
  return chatPush(read, facts).map((push) => ({ channel: chatChannel(account_id), ...push, trace: record.trace }));
}

const hasRow = (entry: ChatEntry): boolean =>
  hasMessageRow(entry) || entry.read?.kind === 'moderation' || isErasedAct(entry);

const STORED = `
  select id from platform_chat_messages where id = any($1::text[]::uuid[])
  union all select id from moderation_log where id = any($1::text[]::uuid[])`;

/** The records without a row. */
async function withoutStored(batch: readonly LoggedRecord[], tx: Queryable): Promise<readonly LoggedRecord[]> {
  if (batch.length === 0) return batch;
  const rows = await tx.query<{ id: string }>(STORED, [textArray(batch.map(({ id }) => id))], 'chat-stored');
  const stored = new Set(rows.map(({ id }) => id));
  return batch.filter(({ id }) => !stored.has(id.toLowerCase()));
}

const HEADS = 'select account_id, place from chat_heads where account_id = any($1::text[]::uuid[])';
/** Ordered, so that no two writers deadlock. */
const SET_HEADS = `
  insert into chat_heads as h (account_id, place)
  select account_id, place from (select unnest($1::text[])::uuid as account_id, unnest($2::bigint[]) as place) heads
  order by 1
  on conflict (account_id) do update set place = excluded.place where h.place < excluded.place`;

/**
 * Gives each record the place of its own time, in the order of the log. A time after the receipt is no place, so that
 * no clock of a platform keeps a record before all that follow.
 */
async function placed(batch: readonly LoggedRecord[], tx: Queryable): Promise<ChatEntry[]> {
  const accounts = [...new Set(batch.map(({ account_id }) => account_id.toLowerCase()))];
  if (accounts.length === 0) return [];
  const rows = await tx.query<{ account_id: string; place: number }>(HEADS, [textArray(accounts)], 'chat-heads');
  const heads = new Map(rows.map(({ account_id, place }) => [account_id, Number(place)]));
  const entries = batch.map((record) => {
    const account_id = record.account_id.toLowerCase();
    const received = exactMicros(record.received_at) ?? Date.parse(record.received_at) * 1000;
    const occurred = exactMicros(record.occurred_at);
    const created_at = occurred === null ? record.received_at : record.occurred_at;
    const micros = occurred ?? received;
    const read = holdable(readChatRecord(record), record.raw);
    const place = Math.min(micros, received);
    return { record, id: record.id.toLowerCase(), account_id, read, place, created_at, micros };
  });
  // Other records take no place, so that batches of any size give the same places.
  await separate(entries.filter(hasRow), heads, tx);
  return entries;
}

function headsOf(entries: readonly ChatEntry[]): unknown[] {
  const heads = new Map<string, number>();
  for (const { account_id, place } of entries) heads.set(account_id, Math.max(place, heads.get(account_id) ?? place));
  return [textArray([...heads.keys()]), [...heads.values()]];
}
