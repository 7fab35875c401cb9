import { z } from 'zod';
import { textChannelsOf } from '../../services/discord/channels';
import {
  AdminDiscordGuild,
  DiscordGuild,
  discordGuildsOf,
  GuildId,
  ownGuild,
  ownGuilds,
} from '../../views/connections/discord-guilds';
import { adminPermission, get, notFound, numbered, permission, query, whole } from '../../app/operation';

/** Source: spec doc1 §5.11, extra-facts §27. */
export const adminDiscordGuilds = query({
  name: 'adminDiscordGuilds',
  summary: 'Discord servers that the bot was let into, with the accounts that they are linked to, the newest first',
  rest: get('/v1/admin/discord-guilds'),
  pages: numbered('PaginatedAdminDiscordGuildResult'),
  guard: [adminPermission('discord-guilds:read')],
  input: z.object({
    search: z
      .string()
      .trim()
      .max(200)
      .nullish()
      .describe("Part of an account's name, or its owner's, in whatever case; or the id of a server"),
  }),
  output: AdminDiscordGuild,
  run: ({ input: { search }, page }, services) => discordGuildsOf(services, page, search ?? ''),
});

const errors = { GUILD_NOT_FOUND: notFound('Discord server not found') };

export const discordGuilds = query({
  name: 'discordGuilds',
  summary: "Discord servers of the active account, with the bot's channels in them",
  rest: get('/v1/discord-guilds'),
  pages: whole(),
  guard: [permission('bot-connections:read')],
  input: z.object({}),
  output: DiscordGuild,
  run: ({ caller: { account_id } }, services) => ownGuilds(services, account_id),
});

export const discordGuild = query({
  name: 'discordGuild',
  summary: 'A Discord server of the active account',
  rest: get('/v1/discord-guilds/{guild_id}'),
  guard: [permission('bot-connections:read')],
  input: z.object({ guild_id: GuildId }),
  output: DiscordGuild,
  errors,
  async run({ input: { guild_id }, caller: { account_id }, refuse }, services) {
    const guild = await ownGuild(services, account_id, guild_id);
    if (guild === undefined) throw refuse('GUILD_NOT_FOUND');
    return guild;
  },
});

const DiscordChannel = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.int().describe("Discord's number: 0 is a text channel, 5 one of announcements"),
  })
  .meta({ id: 'DiscordChannel' });

export const discordChannels = query({
  name: 'discordChannels',
  summary: 'Text channels of a Discord server, as Discord lists them now',
  rest: get('/v1/discord-guilds/{guild_id}/channels'),
  pages: whole(),
  guard: [permission('bot-connections:read')],
  input: z.object({ guild_id: GuildId }),
  output: DiscordChannel,
  errors,
  async run({ input: { guild_id }, caller: { account_id }, refuse }, services) {
    if ((await ownGuild(services, account_id, guild_id)) === undefined) throw refuse('GUILD_NOT_FOUND');
    return textChannelsOf(services, guild_id);
  },
});
