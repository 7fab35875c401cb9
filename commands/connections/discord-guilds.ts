import { z } from 'zod';
import { ConnectionResult } from '../../services/connections/disconnecting';
import { accountOfGuild, DiscordGuild, GuildId, ownGuild } from '../../views/connections/discord-guilds';
import {
  adminPermission,
  command,
  del,
  firstParty,
  invalid,
  notFound,
  patch,
  permission,
  post,
  put,
} from '../../app/operation';
import { connectingErrors } from '../../services/connections/connecting';
import { textChannelsOf } from '../../services/discord/channels';
import { beginConnection, return_to, StartedConnection } from '../../services/connections/starting';
import { DISCORD_FEATURES, isDiscordFeature, MAX_SETTINGS_BYTES } from '../../domain/connections/discord-guilds';
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

/** Source: spec extra-facts §13. */
export const authorizeDiscordGuild = command({
  name: 'authorizeDiscordGuild',
  summary: 'Begins to add the bot to a Discord server, by the page of Discord',
  rest: post('/v1/discord-guilds/authorize', { envelope: 'bare' }),
  guard: [firstParty, permission('bot-connections:create')],
  input: z.object({ return_to }),
  output: StartedConnection,
  errors: connectingErrors,
  run: ({ input, caller, refuse }, services) =>
    beginConnection(services, { caller, platform: 'discord', kind: 'bot', return_to: input.return_to }, refuse),
});

const errors = {
  GUILD_NOT_FOUND: notFound('Discord server not found'),
  SETTINGS_TOO_LARGE: invalid(`settings is larger than ${MAX_SETTINGS_BYTES >> 10} KiB of JSON`),
  BAD_SETTINGS: invalid('{problem}'),
  UNKNOWN_FEATURE: invalid(`feature must be one of ${DISCORD_FEATURES.join(', ')}`),
  NOT_A_TEXT_CHANNEL: invalid('channel_id must be a text channel of this server'),
  CHANNEL_NOT_SET: notFound('No channel is set for {feature}'),
};
const { GUILD_NOT_FOUND, SETTINGS_TOO_LARGE, BAD_SETTINGS, UNKNOWN_FEATURE, NOT_A_TEXT_CHANNEL, CHANNEL_NOT_SET } =
  errors;

/** Settings that the posts use; others are kept as they are. */
const KnownSettings = z.looseObject({
  event_types: z.array(z.string().trim().min(1).max(100)).max(500).nullish(),
  live_message: z.string().max(2_000).nullish(),
});

export const updateDiscordGuild = command({
  name: 'updateDiscordGuild',
  summary: 'Replaces the settings of a Discord server',
  rest: patch('/v1/discord-guilds/{guild_id}'),
  guard: [permission('bot-connections:create')],
  input: z.object({ guild_id: GuildId, settings: z.record(z.string(), z.unknown()).meta({ graphql: 'JSON' }) }),
  output: DiscordGuild,
  errors: { GUILD_NOT_FOUND, SETTINGS_TOO_LARGE, BAD_SETTINGS },
  async run({ input: { guild_id, settings }, caller: { account_id }, act, refuse }, services) {
    const before = await ownGuild(services, account_id, guild_id);
    if (before === undefined) throw refuse('GUILD_NOT_FOUND');
    const text = JSON.stringify(settings);
    if (Buffer.byteLength(text) > MAX_SETTINGS_BYTES) throw refuse('SETTINGS_TOO_LARGE');
    const { error } = KnownSettings.safeParse(settings);
    const [issue] = error?.issues ?? [];
    if (issue !== undefined)
      throw refuse('BAD_SETTINGS', { problem: `settings.${issue.path.join('.')}: ${issue.message}` });
    const configure = { type: 'discord_guild:configure', account_id, guild_id, settings: text } as const;
    await act(connections, connectionsStream(account_id), configure);
    return (await ownGuild(services, account_id, guild_id)) ?? { ...before, settings };
  },
});

const of_channel = { guild_id: GuildId, feature: z.string().max(100) };

export const setDiscordChannel = command({
  name: 'setDiscordChannel',
  summary: 'Gives a channel of a Discord server a use',
  rest: put('/v1/discord-guilds/{guild_id}/channels/{feature}'),
  guard: [permission('bot-connections:create')],
  input: z.object({ ...of_channel, channel_id: z.string().min(1).max(80) }),
  output: DiscordGuild,
  errors: { GUILD_NOT_FOUND, UNKNOWN_FEATURE, NOT_A_TEXT_CHANNEL },
  async run({ input: { guild_id, feature, channel_id }, caller: { account_id }, act, refuse }, services) {
    const before = await ownGuild(services, account_id, guild_id);
    if (before === undefined) throw refuse('GUILD_NOT_FOUND');
    if (!isDiscordFeature(feature)) throw refuse('UNKNOWN_FEATURE');
    const channels = await textChannelsOf(services, guild_id);
    if (!channels.some(({ id }) => id === channel_id)) throw refuse('NOT_A_TEXT_CHANNEL');
    const set = { type: 'discord_guild:set_channel', account_id, guild_id, feature, channel_id } as const;
    await act(connections, connectionsStream(account_id), set);
    const after = await ownGuild(services, account_id, guild_id);
    return after ?? { ...before, channels: { ...before.channels, [feature]: channel_id } };
  },
});

export const deleteDiscordChannel = command({
  name: 'deleteDiscordChannel',
  summary: 'Ends the use of a channel of a Discord server',
  rest: del('/v1/discord-guilds/{guild_id}/channels/{feature}'),
  guard: [permission('bot-connections:create')],
  input: z.object(of_channel),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteDiscordChannelResult' }),
  errors: { GUILD_NOT_FOUND, UNKNOWN_FEATURE, CHANNEL_NOT_SET },
  async run({ input: { guild_id, feature }, caller: { account_id }, act, refuse }, services) {
    if (!isDiscordFeature(feature)) {
      throw refuse((await ownGuild(services, account_id, guild_id)) ? 'UNKNOWN_FEATURE' : 'GUILD_NOT_FOUND');
    }
    const remove = { type: 'discord_guild:remove_channel', account_id, guild_id, feature } as const;
    await act(connections, connectionsStream(account_id), remove);
    return { success: true };
  },
});
