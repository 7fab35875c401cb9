import { z } from 'zod';
import { Done } from '../access/detaching';
import { accountOfGuild, GuildId } from '../access/discord-guilds';
import { adminPermission, command, del, notFound } from '../access/operation';
import { load } from '../access/states';
import { connectionReservations } from '../domain/connection-reservations';
import { connections, connectionsStream } from '../domain/connections';

/** The bot's tokens are taken back at Discord too, later. Source: spec doc1 §5.11, extra-facts §27. */
export const adminDeleteDiscordGuild = command({
  name: 'adminDeleteDiscordGuild',
  summary: 'Ends the link of a Discord server with its account',
  rest: del('/v1/admin/discord-guilds/{guild_id}'),
  guard: [adminPermission('discord-guilds:delete')],
  input: z.object({ guild_id: GuildId }),
  output: Done,
  errors: { CONNECTION_NOT_FOUND: notFound('Discord server not found') },
  async run({ input: { guild_id }, act, refuse }, { events }) {
    // Also of a server that is linked no more: a repeated call is answered as the first.
    const account_id = await accountOfGuild(events, guild_id);
    if (account_id === null) throw refuse('CONNECTION_NOT_FOUND');
    const stream = connectionsStream(account_id);
    const bot = (await load(events, connections, stream))?.state.bots.get('discord');
    const connection_id = bot?.platform_user_id === guild_id ? bot.connection_id : '';
    const disconnect = { type: 'connection:disconnect', account_id, kind: 'bot', connection_id } as const;
    await act(connections, stream, disconnect, { step: `guild ${guild_id}`, reservations: connectionReservations });
    return { success: true };
  },
});
