import type { Platform } from '../../domain/common/vendors';
import { accountFlags } from './account-flags';
import { customBotAllowed } from './custom-bots';
import { type Queryable, textArray } from '../../engines/postgres/port';
import { echoMark } from '../chat/sends';

const BOTS = 'feature:bots';

/** A channel in which a bot may act. */
export interface BotPlace {
  account_id: string;
  platform: Platform;
}

/** Predicate of the channels with a bot that can speak and that the account lets act, while its plan has bots. */
export async function placesWithBot(
  db: Pick<Queryable, 'query'>,
  places: readonly BotPlace[],
): Promise<(place: BotPlace) => boolean> {
  const accounts = [...new Set(places.map(({ account_id }) => account_id))];
  const rows = await db.query<BotPlace & Record<string, unknown>>(
    `select c.account_id, c.platform from channel_connections c
     where c.account_id = any($1::text[]::uuid[]) and c.bot_enabled
       and (exists (select from bot_connections b where b.account_id = c.account_id and b.platform = c.platform
           and not b.reconnect_required and ${customBotAllowed('c.account_id')})
         or exists (select from system_connections s where s.platform = c.platform
           and s.bot_connection_id is not null and not s.reconnect_required))`,
    [textArray(accounts)],
    'places-with-bot',
  );
  const isOn = await accountFlags(
    db,
    rows.map(({ account_id }) => account_id),
    [BOTS],
  );
  const on = rows.filter(({ account_id }) => isOn(BOTS, account_id));
  const found = new Set(on.map(({ account_id, platform }) => `${account_id} ${platform}`));
  return ({ account_id, platform }) => found.has(`${account_id} ${platform}`);
}

/** A person on a platform. */
export interface Author {
  platform: string;
  platform_user_id: string;
}

const authorKey = ({ platform, platform_user_id }: Author) => `${platform} ${platform_user_id}`;

/** Whether an author is a bot that is connected to this installation, by any account or by its operator. */
export async function installedBots(
  db: Pick<Queryable, 'query'>,
  authors: readonly Author[],
): Promise<(author: Author) => boolean> {
  const rows = await db.query<Author & Record<string, unknown>>(
    `select a.platform, a.platform_user_id
     from unnest($1::text[], $2::text[]) a (platform, platform_user_id)
     where exists (select from bot_connections b
         where b.platform = a.platform and b.platform_user_id = a.platform_user_id)
       or exists (select from system_connections s
         where s.platform = a.platform and s.bot_user_id = a.platform_user_id)`,
    [textArray(authors.map(({ platform }) => platform)), textArray(authors.map((author) => author.platform_user_id))],
    'installed-bots',
  );
  const found = new Set(rows.map(authorKey));
  return (author) => found.has(authorKey(author));
}

/** A message in an account's own room. */
export interface SaidMessage {
  account_id: string;
  platform: string;
  message_id: string | null;
  /** Time of the line, in milliseconds since 1970. */
  at_ms: number;
  /** Absent: not compared with sends to which the platform gave no id. */
  text?: string;
}

interface Sent extends Pick<SaidMessage, 'account_id' | 'platform' | 'message_id'> {
  asked_ms: number;
  /** Of a send whose platform named no id. */
  mark: number | null;
}

/** Time after a send without a stored id in which its echo is expected, in milliseconds. */
export const ECHO_MS = 15_000;

/**
 * Whether a message of a bot that is the channel itself was sent by this installation: its send names the message, a
 * send of the account to this platform shortly before the message has no stored outcome, or the platform named no id of
 * one with this text.
 */
export async function sentHere(
  db: Pick<Queryable, 'query'>,
  messages: readonly SaidMessage[],
): Promise<(message: SaidMessage) => boolean> {
  if (messages.length === 0) return () => false;
  const accounts = [...new Set(messages.map(({ account_id }) => account_id))];
  const earliest_ms = Math.min(...messages.map(({ at_ms }) => at_ms)) - ECHO_MS;
  const rows = await db.query<Sent & Record<string, unknown>>(
    `select account_id, platform, message_id, (extract(epoch from asked_at) * 1000)::float8 as asked_ms,
       case status when 'sent' then echo_mark end as mark
     from chat_sends
     where account_id = any($1::text[]::uuid[])
       and (message_id = any($2::text[])
         or (message_id is null and asked_at > to_timestamp($3::float8 / 1000)
           and ((status in ('asked', 'unknown') and text_hash is not null)
             or (status = 'sent' and echo_mark is not null))))`,
    [textArray(accounts), textArray(messages.flatMap(({ message_id }) => message_id ?? [])), earliest_ms],
    'sent-here',
  );
  const named = new Set(rows.map((row) => `${row.account_id} ${row.message_id}`));
  const nameless = rows.filter(({ message_id }) => message_id === null);
  return ({ account_id, platform, message_id, at_ms, text }) =>
    (message_id !== null && named.has(`${account_id} ${message_id}`)) ||
    nameless.some(
      ({ mark, ...send }) =>
        send.account_id === account_id &&
        send.platform === platform &&
        send.asked_ms > at_ms - ECHO_MS &&
        (mark === null || (text !== undefined && mark === echoMark(text))),
    );
}
