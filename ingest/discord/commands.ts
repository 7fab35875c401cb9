import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import {
  DISCORD_COMMAND,
  type DiscordUseOfCommand,
  NOT_NOW,
  roleOfMember,
} from '../../domain/automation/discord-commands';
import { commandIn } from '../../domain/automation/expansion';
import { TOPICS } from '../../domain/common/records';
import { withTimeout } from '../../lib/async/signal';
import { readTime } from '../../lib/time/vendor-times';
import type { DiscordGuildRoles, DiscordRest } from '../../vendors/discord/port';
import { eventTime } from '../runtime/parse/times';
import * as webhook from '../runtime/webhook/webhook';
import type { Outcome } from '../runtime/webhook/webhook';

/** Milliseconds for which roles of a server are cached, and most servers with cached roles. */
const ROLES_MS = 60_000;
const MAX_GUILDS = 1_000;
/** Milliseconds for the look-up of a slash command, of the 3 seconds in which Discord takes an answer. */
const LOOKED_UP_MS = 1_000;

const Message = z.object({
  id: z.string().min(1).max(100),
  channel_id: z.string().min(1).max(100),
  guild_id: z.string().min(1).max(100),
  content: z.string(),
  webhook_id: z.string().nullish(),
  author: z.object({
    id: z.string().min(1).max(100),
    username: z.string(),
    global_name: z.string().nullish(),
    bot: z.boolean().nullish(),
  }),
  member: z.object({
    nick: z.string().nullish(),
    roles: z.array(z.string()).catch([]),
    premium_since: z.string().nullish(),
  }),
});

const Interaction = z.object({
  /** A command. */
  type: z.literal(2),
  id: z.string().min(1).max(100),
  token: z.string().min(1).max(500),
  application_id: z.string().min(1).max(100),
  guild_id: z.string().min(1).max(100),
  channel_id: z.string().min(1).max(100),
  data: z.object({
    name: z.string().min(1).max(50),
    options: z.array(z.object({ name: z.string(), value: z.string().catch('') })).catch([]),
  }),
  member: z.object({
    user: z.object({ id: z.string().min(1).max(100), username: z.string(), global_name: z.string().nullish() }),
    permissions: z.string().regex(/^\d{1,30}$/),
    nick: z.string().nullish(),
    premium_since: z.string().nullish(),
  }),
});

/** A message that names a command, as it is delivered for storing. */
export const CommandUse = z.object({ account_id: z.uuid(), command: z.record(z.string(), z.unknown()) });
export type CommandUse = z.output<typeof CommandUse>;

export interface DiscordCommandsDeps {
  /** Whether the word after `!` names a command of the account. */
  isCommand(account_id: string, word: string): Promise<boolean>;
  /** Whether the word names a command that the account answers in the server; Discord may still show ended ones. */
  isAnswered(of: { account_id: string; guild_id: string; word: string }): Promise<boolean>;
  rest: Pick<DiscordRest, 'roles' | 'acknowledge' | 'refuse'>;
  /** Reports an interaction that could not be looked up or acknowledged. */
  onFailed?(error: unknown): void;
}

/** Finds messages that name a command, with the role of their authors. */
export function createDiscordCommands({
  isCommand,
  isAnswered,
  rest,
  onFailed = () => undefined,
}: DiscordCommandsDeps) {
  const cached = new LRUCache<string, DiscordGuildRoles>({ max: MAX_GUILDS, ttl: ROLES_MS });

  async function rolesOf(guild_id: string): Promise<DiscordGuildRoles> {
    const before = cached.get(guild_id);
    if (before !== undefined) return before;
    const roles = await rest.roles(guild_id);
    cached.set(guild_id, roles);
    return roles;
  }

  /** False when the command has ended. A use that cannot be looked up in time is decided later. */
  const mayBeAnswered = (of: { account_id: string; guild_id: string; word: string }): Promise<boolean> =>
    withTimeout(isAnswered(of), LOOKED_UP_MS, () => new Error('a slash command was not looked up in time')).catch(
      (error: unknown) => {
        onFailed(error);
        return true;
      },
    );

  return {
    /**
     * The use of a slash command; acknowledges it at once, because Discord waits for 3 seconds only. Null for a command
     * that has ended: its use is answered here.
     */
    async interactionOf(account_id: string, data: unknown): Promise<DiscordUseOfCommand | null> {
      const { data: interaction } = Interaction.safeParse(data);
      if (interaction === undefined) return null;
      const { id, token, application_id, guild_id, channel_id, member, data: command } = interaction;
      if (!(await mayBeAnswered({ account_id, guild_id, word: command.name }))) {
        await rest.refuse({ id, token }, NOT_NOW).catch((error: unknown) => onFailed(error));
        return null;
      }
      // An interaction that is repeated was acknowledged before.
      await rest.acknowledge({ id, token }).catch((error: unknown) => onFailed(error));
      const { owner_id } = await rolesOf(guild_id).catch(() => NO_ROLES);
      const { user: author, permissions, nick, premium_since } = member;
      const role = roleOfMember({
        is_owner: author.id === owner_id,
        permissions: BigInt(permissions),
        is_booster: readTime(premium_since) !== null,
      });
      const user = nick || author.global_name || author.username;
      const of = { guild_id, channel_id, message_id: id, interaction: { application_id, token } };
      const args = command.options.find(({ name }) => name === 'text')?.value ?? '';
      return { ...of, user_id: author.id, user, role, word: command.name, args: args.trim() };
    },
    /**
     * The use of a command; null for any other message, and for those of bots. A member whose roles cannot be read has
     * the role of a booster or follower.
     */
    async useOf(account_id: string, data: unknown): Promise<DiscordUseOfCommand | null> {
      const { data: message } = Message.safeParse(data);
      if (message === undefined || message.author.bot === true || message.webhook_id) return null;
      const used = commandIn(message.content);
      if (used === null || used.word.length > 50 || !(await isCommand(account_id, used.word))) return null;
      const { id: message_id, channel_id, guild_id, author, member } = message;
      const { owner_id, permissions } = await rolesOf(guild_id).catch(() => NO_ROLES);
      const bits = [guild_id, ...member.roles].map((role) => permissions.get(role) ?? 0n);
      const role = roleOfMember({
        is_owner: author.id === owner_id,
        permissions: bits.reduce((all, one) => all | one, 0n),
        is_booster: readTime(member.premium_since) !== null,
      });
      const user = member.nick || author.global_name || author.username;
      return { guild_id, channel_id, message_id, interaction: null, user_id: author.id, user, role, ...used };
    },
  };
}
export type DiscordCommands = ReturnType<typeof createDiscordCommands>;

const NO_ROLES: DiscordGuildRoles = { owner_id: null, permissions: new Map() };

/** Converts a message that names a command to a record. */
export function normaliseCommand({ account_id, command }: CommandUse, received_at: number): Outcome {
  const user_id = webhook.idText(command['user_id']);
  const message_id = webhook.idText(command['message_id']);
  if (user_id === null || message_id === null) return webhook.park('bad_payload', 'user_id or message_id is missing');
  return webhook.ok({
    owner: { kind: 'account', account_id },
    topic: TOPICS.chat_events,
    type: DISCORD_COMMAND,
    platform: 'discord',
    external_id: webhook.externalId('discord', 'command', message_id),
    occurred_at: eventTime(received_at, timeOfId(message_id)),
    subject: webhook.subjectOf('discord', user_id),
    raw: JSON.stringify(command),
  });
}

/** Milliseconds from 1970 to the beginning of Discord's ids. */
const DISCORD_EPOCH_MS = 1_420_070_400_000n;

/** Time in an id of Discord; null of a malformed one. */
function timeOfId(id: string): string | null {
  if (!/^\d{15,20}$/.test(id)) return null;
  return new Date(Number((BigInt(id) >> 22n) + DISCORD_EPOCH_MS)).toISOString();
}
