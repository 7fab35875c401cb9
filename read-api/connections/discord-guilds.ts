import { z } from 'zod';
import { DiscordGuild, discordGuildsOf } from '../../views/connections/discord-guilds';
import { adminPermission, get, numbered, query } from '../../app/operation';

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
  output: DiscordGuild,
  run: ({ input: { search }, page }, services) => discordGuildsOf(services, page, search ?? ''),
});
