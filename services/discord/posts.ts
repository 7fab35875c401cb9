import type { Queryable } from '../../engines/postgres/port';
import { MAX_POST_CHARACTERS } from '../../domain/connections/discord-posts';
import { cutTo } from '../../domain/automation/expansion';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { DiscordLimited, DiscordRefused, type DiscordRest } from '../../vendors/discord/port';

/** A message of an account for a channel of its own Discord server. */
export interface DiscordPostRequest {
  account_id: string;
  /** Id of the cause: one cause posts one message. */
  cause_id: string;
  channel_id: string;
  text: string;
  /** Message that is answered. */
  reply_to?: string | null;
  /** Interaction that the message answers. */
  interaction?: { application_id: string; token: string } | null;
  /** Server that the channel is known to be in. Absent: the channel is compared with those of the account's server. */
  of_guild?: string;
}

export type DiscordPostResult =
  | { sent: true; message_id: string | null }
  /** `passing`: a limit, or Discord was not reached; nothing was kept, and a later try may succeed. */
  | { sent: false; error: string; passing: boolean; unknown: boolean; retry_after_ms?: number };

export interface DiscordPostServices {
  db: Pick<Queryable, 'query'>;
  discord: DiscordRest;
}

type Status = 'asked' | 'sent' | 'refused' | 'unknown';
type Cause = Pick<DiscordPostRequest, 'account_id' | 'cause_id'>;

const failed = (error: string, more: { passing?: boolean; unknown?: boolean } = {}): DiscordPostResult => ({
  ...{ sent: false, error, passing: false, unknown: false },
  ...more,
});
const UNKNOWN = failed('Discord did not answer; it is not known whether the message was posted', { unknown: true });

/**
 * Posts one message for a cause into a channel of the account's server, and pings nobody. The cause is kept before the
 * call; a repetition posts nothing and answers the stored outcome.
 */
export async function postToDiscord(
  services: DiscordPostServices,
  request: DiscordPostRequest,
): Promise<DiscordPostResult> {
  const { db, discord } = services;
  const { account_id, cause_id, channel_id, reply_to } = request;
  const text = cutTo(request.text.trim(), MAX_POST_CHARACTERS);
  if (text === '') return failed('The message is empty');
  const earlier = await earlierPost(db, request);
  if (earlier !== null) return earlier;
  try {
    if (!(await isOwnChannel(services, request)))
      return failed('The channel is not one of the account’s Discord server');
  } catch (error) {
    return failureOf(error, true);
  }
  const kept = await db.query(
    'insert into discord_posts (account_id, id) values ($1, $2) on conflict do nothing returning 1 as one',
    [account_id, cause_id],
    'discord-post-keep',
  );
  if (kept.length === 0) return (await earlierPost(db, request)) ?? UNKNOWN;
  try {
    const { interaction } = request;
    const message_id = interaction
      ? await answered(discord, interaction, text)
      : await discord.post(channel_id, { text, reply_to: reply_to ?? null });
    await endPost(db, request, 'sent', message_id);
    return { sent: true, message_id };
  } catch (error) {
    const result = failureOf(error, false);
    if (!result.sent && result.passing)
      await db.query('delete from discord_posts where account_id = $1 and id = $2', [account_id, cause_id]);
    else await endPost(db, request, result === UNKNOWN ? 'unknown' : 'refused');
    return result;
  }
}

async function answered(
  discord: DiscordRest,
  { application_id, token }: { application_id: string; token: string },
  text: string,
): Promise<null> {
  await discord.answerInteraction(application_id, token, text);
  return null;
}

/** @throws errors of this program */
function failureOf(error: unknown, isRead: boolean): DiscordPostResult {
  if (error instanceof DiscordRefused) return failed(error.message);
  const passing = { ...failed('Discord could not be reached; nothing was posted', { passing: true }) };
  if (error instanceof DiscordLimited) return { ...passing, retry_after_ms: error.retry_after_ms } as DiscordPostResult;
  if (error instanceof NotSent) return passing;
  if (error instanceof OutcomeUnknown) return isRead ? passing : UNKNOWN;
  throw error;
}

/** Stored outcome of a cause; null where none was kept. */
async function earlierPost(db: Pick<Queryable, 'query'>, of: Cause): Promise<DiscordPostResult | null> {
  const [row] = await db.query<{ status: Status; message_id: string | null }>(
    'select status, message_id from discord_posts where account_id = $1 and id = $2',
    [of.account_id, of.cause_id],
    'discord-post-earlier',
  );
  if (row === undefined) return null;
  if (row.status === 'sent') return { sent: true, message_id: row.message_id };
  return row.status === 'refused' ? failed('The message was not posted') : UNKNOWN;
}

async function endPost(db: Pick<Queryable, 'query'>, of: Cause, status: Status, message_id: string | null = null) {
  await db.query(
    'update discord_posts set status = $3, message_id = $4 where account_id = $1 and id = $2',
    [of.account_id, of.cause_id, status, message_id],
    'discord-post-end',
  );
}

/** Marks a post whose call may have been made. */
export const markUnknown = (db: Pick<Queryable, 'query'>, { account_id, cause_id }: Cause) =>
  db.query(`update discord_posts set status = 'unknown' where account_id = $1 and id = $2 and status = 'asked'`, [
    account_id,
    cause_id,
  ]);

/**
 * Whether the channel is one of the account's server: the bot is in the servers of all accounts. A channel with a use
 * was compared when it was set.
 */
async function isOwnChannel(
  { db, discord }: DiscordPostServices,
  { account_id, channel_id, of_guild }: DiscordPostRequest,
): Promise<boolean> {
  const rows = await db.query<{ guild_id: string; is_set: boolean }>(
    `select b.platform_user_id as guild_id, exists (select from discord_guild_channels c
       where c.connection_id = b.id and c.channel_id = $2) as is_set
     from bot_connections b where b.account_id = $1 and b.platform = 'discord'`,
    [account_id, channel_id],
    'discord-own-channel',
  );
  const [guild] = rows;
  if (guild === undefined) return false;
  if (of_guild !== undefined) return of_guild === guild.guild_id;
  return guild.is_set || (await discord.textChannels(guild.guild_id)).some(({ id }) => id === channel_id);
}

/** Deletes outcomes after a week: no job is tried for longer. Returns their number. */
export async function sweepDiscordPosts(db: Pick<Queryable, 'query'>): Promise<number> {
  const gone = await db.query(
    `delete from discord_posts where asked_at < now() - interval '7 days' returning 1 as one`,
  );
  return gone.length;
}
