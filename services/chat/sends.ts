import type { Platform } from '../../domain/common/vendors';
import { LOCK_PAIRS } from '../../engines/locks/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { murmur2 } from '../../lib/hash/murmur2';
import type { IdentityHasher } from '../identity/identities';

export type SendStatus = 'asked' | 'sent' | 'refused' | 'unknown';

/** A message that was asked to be sent. */
export interface Send {
  account_id: string;
  /** Id of the cause: one cause sends one message. */
  id: string;
  platform: Platform;
  /** Login or bot connection that speaks. */
  speaker_id: string;
  /** The platform's id of the channel. */
  channel_id: string;
  /** Keyed hash of the speaker at the platform; null of one whose login does not name their channel. */
  speaker_hash: string | null;
  /** {@link textHash}; null of a call that sends no text. */
  text_hash: string | null;
  /** {@link echoMark}; absent in a call that sends no text. */
  echo_mark?: number;
}

/** Mark by which the echo of a text is found: 15 bits, too few to find the text. */
export const echoMark = (text: string): number => murmur2(Buffer.from(text.trim())) & 0x7fff;

/** Keyed hash of the text of a send: equal texts of two sends have different ones. */
export const textHash = (hash: IdentityHasher, send_id: string, text: string): string =>
  hash(`chat-send:${send_id}`, text.trim());

/** A send that was asked for earlier. */
export interface EarlierSend extends Pick<Send, 'platform' | 'speaker_id' | 'speaker_hash' | 'text_hash'> {
  /** Null in a send of an earlier release; its text has no hash, so that its echo is not found. */
  channel_id: string | null;
  status: SendStatus;
  message_id: string | null;
  /** RFC 3339. */
  asked_at: string;
  /** Whether its echo can no longer be expected. */
  is_old: boolean;
}

/** Time within which the platform echoes a message. */
const ECHO_SECONDS = 60;
/** As long as the idempotency keys, which are older than their sends. */
const KEPT = `interval '24 hours'`;

/**
 * Keeps a send before the call. Returns the send of the same cause where there is one; `too_fast` means that the
 * speaker has sent as many messages to the channel as the pace allows, over all nodes, and nothing was kept.
 */
export async function keepSend(
  db: Pick<Database, 'query' | 'transaction'>,
  { account_id, id, platform, speaker_id, channel_id, speaker_hash, text_hash, echo_mark }: Send,
  pace: { messages: number; seconds: number } | null,
): Promise<'kept' | 'too_fast' | EarlierSend> {
  const kept = await db.transaction(async (tx) => {
    if (pace !== null) {
      // Two requests that count at the same time would both fit, on whichever nodes.
      const lock = 'select pg_advisory_xact_lock($1::int, hashtext($2))';
      await tx.query(lock, [LOCK_PAIRS.chat_pace, `${speaker_hash} ${channel_id}`]);
    }
    const rows = await tx.query(
      `insert into chat_sends (account_id, id, platform, speaker_id, channel_id, speaker_hash, text_hash, echo_mark)
       select $1, $2, $3, $4, $5, $6, $7, $10::smallint
       where $8::int is null or (
         select count(*) from (
           select 1 from chat_sends
           where speaker_hash = $6 and channel_id = $5 and status <> 'refused'
             and asked_at > clock_timestamp() - make_interval(secs => $9)
           limit $8) recent) < $8
       on conflict (account_id, id) do nothing returning 1`,
      [
        ...[account_id, id, platform, speaker_id, channel_id, speaker_hash, text_hash],
        ...[pace?.messages ?? null, pace?.seconds ?? 0, echo_mark ?? null],
      ],
      'chat-send-keep',
    );
    return rows.length > 0;
  });
  return kept ? 'kept' : ((await earlierSend(db, account_id, id)) ?? 'too_fast');
}

/** The send of this cause; null where none was kept. */
export async function earlierSend(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  id: string,
): Promise<EarlierSend | null> {
  const [row] = await db.query<EarlierSend & Record<string, unknown>>(
    `select status, message_id, platform, speaker_id, channel_id, speaker_hash, text_hash, asked_at,
       asked_at < clock_timestamp() - make_interval(secs => ${ECHO_SECONDS}) as is_old
     from chat_sends where account_id = $1 and id = $2`,
    [account_id, id],
    'chat-send-earlier',
  );
  return row ?? null;
}

/** Stores the outcome of a send. */
export async function endSend(
  db: Pick<Queryable, 'query'>,
  { account_id, id }: Pick<Send, 'account_id' | 'id'>,
  status: SendStatus,
  message_id: string | null = null,
): Promise<void> {
  await db.query(
    'update chat_sends set status = $3, message_id = $4 where account_id = $1 and id = $2',
    [account_id, id, status, message_id],
    'chat-send-end',
  );
}

/** Forgets a send that was asked for and certainly not done. */
export async function dropSend(
  db: Pick<Queryable, 'query'>,
  { account_id, id }: Pick<Send, 'account_id' | 'id'>,
): Promise<void> {
  await db.query(
    `delete from chat_sends where account_id = $1 and id = $2 and status = 'asked'`,
    [account_id, id],
    'chat-send-drop',
  );
}

/** Most messages that are compared with a send. */
const COMPARED = 20_000;

/**
 * Id of the message that echoes a send of the account: the same text by the same speaker in the same channel, later
 * than the send. Returns null without one.
 */
export async function echoOf(
  db: Pick<Queryable, 'query'>,
  hash: IdentityHasher,
  { account_id, id }: Pick<Send, 'account_id' | 'id'>,
  { platform, speaker_id, channel_id, speaker_hash, text_hash, asked_at }: EarlierSend,
): Promise<string | null> {
  if (text_hash === null) return null;
  const messages = await db.query<{ message_id: string; message: string; author: string | null }>(
    `with speaker as (
       select coalesce(
         (select platform_user_id from connection_grants where connection_id = $3),
         (select provider_account_id from login_grants where login_connection_id = $3 and $2 <> 'youtube')) as id
     ), time as (
       select (extract(epoch from $4::timestamptz) * 1000000)::bigint as asked
     )
     select m.message_id, m.message, m.content ->> 'platform_user_id' as author
     from speaker, time, platform_chat_messages m
     where m.account_id = $1 and m.platform = $2 and m.message_id is not null and m.content ->> 'channel_id' = $5
       and (speaker.id is null or exists (select from platform_users u
         where u.account_id = $1 and u.person_key = m.person_key and u.platform_user_id = speaker.id))
       -- Some platforms tell whole seconds.
       and m.created_at >= date_trunc('second', $4::timestamptz) and m.place >= time.asked - 1000000
       and m.place < time.asked + ${2 * ECHO_SECONDS} * 1000000::bigint
       and not exists (select from chat_sends s where s.account_id = $1 and s.message_id = m.message_id)
     order by m.place limit ${COMPARED}`,
    [account_id, platform, speaker_id, asked_at, channel_id],
    'chat-send-echo',
  );
  const echo = messages.find(
    ({ message, author }) =>
      textHash(hash, id, message) === text_hash &&
      (speaker_hash === null || (author !== null && hash(platform, author) === speaker_hash)),
  );
  return echo?.message_id ?? null;
}

/** Deletes sends that no repetition can ask for any more. Returns their number. */
export async function sweepSends(db: Pick<Queryable, 'query'>): Promise<number> {
  const gone = await db.query(`delete from chat_sends where asked_at < now() - ${KEPT} returning 1 as one`);
  return gone.length;
}
