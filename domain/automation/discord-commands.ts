import { z } from 'zod';
import { BOT_ROLES, type BotRole } from './bot-roles';
import { parsedJson } from '../../lib/json/paths';

/** Type of the record of a message in Discord that names a command, on the topic of chats. */
export const DISCORD_COMMAND = 'discord:command';
/** Name of the job. */
export const ANSWER_DISCORD_COMMAND = 'answer-discord-command';
/** Answer of a slash command that has ended, within a cooldown, or of a stronger role. */
export const NOT_NOW = 'You cannot use this command now.';

/** Message in a server that names a command: the `raw` of its record. */
const Use = z.object({
  guild_id: z.string(),
  channel_id: z.string(),
  /** Id of the message, or of the interaction. */
  message_id: z.string(),
  /** Of a slash command: its answer is addressed by these. */
  interaction: z.object({ application_id: z.string(), token: z.string() }).nullable(),
  user_id: z.string(),
  user: z.string(),
  role: z.enum(BOT_ROLES),
  word: z.string(),
  args: z.string(),
});
export type DiscordUseOfCommand = z.output<typeof Use>;

/** Content of a record; null of an erased one. */
export const readDiscordCommand = (raw: string): DiscordUseOfCommand | null =>
  Use.safeParse(parsedJson(raw)).data ?? null;

/** A use of a command in Discord, as its job carries it. Members about the person are sealed under the person's key. */
export const UsedDiscordCommand = {
  account_id: z.uuid(),
  command_id: z.uuid(),
  /** Id of the record. */
  cause_id: z.uuid(),
  guild_id: z.string(),
  channel_id: z.string(),
  message_id: z.string(),
  /** Null of a message. */
  application_id: z.string().nullable(),
  /** Null of a slash command that is not allowed now. */
  count: z.int().nullable(),
  token: z.string().nullable(),
  platform_user_id: z.string().nullable(),
  user: z.string().nullable(),
  args: z.string().nullable(),
};
export type UsedDiscordCommand = z.output<z.ZodObject<typeof UsedDiscordCommand>>;

const subjectOf = ({ platform_user_id }: Record<string, unknown>): string | null =>
  typeof platform_user_id === 'string' ? `discord:${platform_user_id}` : null;
/** Members about the person, and whose they are. */
export const DISCORD_PERSONAL = { platform_user_id: subjectOf, token: subjectOf, user: subjectOf, args: subjectOf };

const ADMINISTRATOR = 1n << 3n;
const MANAGE_MESSAGES = 1n << 13n;

/** Facts about a member of a server that decide their role. */
export interface DiscordMember {
  is_owner: boolean;
  /** Bits of the permissions of all roles of the member. */
  permissions: bigint;
  is_booster: boolean;
}

/** Role of a member of a server; everybody in it counts as a follower. */
export function roleOfMember({ is_owner, permissions, is_booster }: DiscordMember): BotRole {
  if (is_owner) return 'broadcaster';
  if ((permissions & (ADMINISTRATOR | MANAGE_MESSAGES)) !== 0n) return 'moderator';
  return is_booster ? 'subscriber' : 'follower';
}
