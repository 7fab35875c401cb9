import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

export type SendStatus = 'asked' | 'sent' | 'refused' | 'unknown';

/** A message that was asked to be sent. */
export interface Send {
  account_id: string;
  /** Id of the cause: one cause sends one message. */
  id: string;
  platform: Platform;
  /** Login or bot connection that speaks. */
  speaker_id: string;
}

/** A send that was asked for earlier. */
export interface EarlierSend extends Pick<Send, 'speaker_id'> {
  status: SendStatus;
  message_id: string | null;
  /** RFC 3339. */
  asked_at: string;
  /** Whether its echo can no longer be expected. */
  is_old: boolean;
}

/** Time within which the platform echoes a message. */
const ECHO_SECONDS = 60;
/** Idempotency keys are kept for a day. */
const KEPT = `interval '25 hours'`;

/**
 * Keeps a send before the call. Returns the send of the same cause where there is one; `too_fast` means that the
 * speaker has sent as many messages as the pace allows, and nothing was kept.
 */
export async function keepSend(
  db: Pick<Queryable, 'query'>,
  { account_id, id, platform, speaker_id }: Send,
  pace: { messages: number; seconds: number } | null,
): Promise<'kept' | 'too_fast' | EarlierSend> {
  const rows = await db.query(
    `insert into chat_sends (account_id, id, platform, speaker_id)
     select $1, $2, $3, $4
     where $5::int is null or (
       select count(*) from (
         select 1 from chat_sends
         where speaker_id = $4 and asked_at > clock_timestamp() - make_interval(secs => $6) and status <> 'refused'
         limit $5) recent) < $5
     on conflict (account_id, id) do nothing returning 1`,
    [account_id, id, platform, speaker_id, pace?.messages ?? null, pace?.seconds ?? 0],
    'chat-send-keep',
  );
  if (rows.length > 0) return 'kept';
  return (await earlierSend(db, account_id, id)) ?? 'too_fast';
}

/** The send of this cause; null where none was kept. */
export async function earlierSend(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  id: string,
): Promise<EarlierSend | null> {
  const [row] = await db.query<EarlierSend & Record<string, unknown>>(
    `select status, message_id, speaker_id, asked_at,
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

/** Send with an unknown outcome. */
export interface Unanswered extends Pick<EarlierSend, 'speaker_id' | 'asked_at'> {
  account_id: string;
  platform: Platform;
  text: string;
}

/**
 * Id of the message that echoes a send: the same text by the same speaker. A login with Google does not name its
 * channel, so that the text alone decides. Returns null without one.
 */
export async function echoOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, speaker_id, text, asked_at }: Unanswered,
): Promise<string | null> {
  const [row] = await db.query<{ message_id: string }>(
    `with speaker as (
       select coalesce(
         (select platform_user_id from connection_grants where connection_id = $3),
         (select provider_account_id from login_grants where login_connection_id = $3 and $2 <> 'youtube')) as id
     ), time as (
       select (extract(epoch from $5::timestamptz) * 1000000)::bigint as asked
     )
     select m.message_id from speaker, time, platform_chat_messages m
     where m.account_id = $1 and m.platform = $2 and m.message_id is not null
       and (($2 = 'youtube' and speaker.id is null) or exists (select from platform_users u
         where u.account_id = $1 and u.person_key = m.person_key and u.platform_user_id = speaker.id))
       and m.place >= time.asked - 1000000 and m.place < time.asked + ${2 * ECHO_SECONDS} * 1000000::bigint
       and btrim(m.message) = btrim($4)
       and not exists (select from chat_sends s where s.account_id = $1 and s.message_id = m.message_id)
     order by m.place limit 1`,
    [account_id, platform, speaker_id, text, asked_at],
    'chat-send-echo',
  );
  return row?.message_id ?? null;
}

/** Deletes sends that no repetition can ask for any more. Returns their number. */
export async function sweepSends(db: Pick<Queryable, 'query'>): Promise<number> {
  const gone = await db.query(`delete from chat_sends where asked_at < now() - ${KEPT} returning 1 as one`);
  return gone.length;
}
