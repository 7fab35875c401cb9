import { z } from 'zod';
import { ConnectionResult } from '../../services/connections/disconnecting';
import { accountOfGuild, GuildId } from '../../views/connections/discord-guilds';
import { adminPermission, command, del, notFound } from '../../app/operation';
import { load } from '../../app/write-path/aggregate-cache';
import { connectionReservations } from '../../domain/connections/connection-reservations';
import { connections, connectionsStream } from '../../domain/connections/connections';

/**
 * Unlinks a Discord server; a reactor then revokes the bot's tokens at Discord. Source: spec doc1 §5.11, extra-facts
 * §27.
 */
export const adminDeleteDiscordGuild = command({
  name: 'adminDeleteDiscordGuild',
  summary: 'Ends the link of a Discord server with its account',
  rest: del('/v1/admin/discord-guilds/{guild_id}'),
  guard: [adminPermission('discord-guilds:delete')],
  input: z.object({ guild_id: GuildId }),
  output: ConnectionResult,
  errors: { CONNECTION_NOT_FOUND: notFound('Discord server not found') },
  async run({ input: { guild_id }, act, refuse }, { events }) {
    // Also finds the former account of an unlinked server, so that a repeated call is answered like the first.
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
