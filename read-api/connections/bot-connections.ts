import { z } from 'zod';
import { BotChannel, BotState, botStatesOf } from '../../views/connections/bot-states';
import { BotConnection, botConnectionsOf, offered } from '../../views/connections/connections';
import { get, permission, query, rowsOf, numbered, systemKeyOnly, whole } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';

/** Source: spec doc2 §4.2. */
export const botConnections = query({
  name: 'botConnections',
  summary: "The active account's bots, of platforms that are offered for bots",
  rest: get('/v1/bot-connections'),
  pages: whole(),
  guard: [permission('bot-connections:read')],
  input: z.object({}),
  output: BotConnection,
  run: async ({ caller: { account_id } }, services) =>
    offered(services, 'bot', account_id, await botConnectionsOf(services, account_id)),
});

/** Source: spec extra-facts §13. */
export const botStatus = query({
  name: 'botStatus',
  summary: "Whether the bot acts in the active account's channels, one for each streaming platform",
  rest: get('/v1/bot-status'),
  pages: whole(),
  guard: [permission('bot-connections:read')],
  input: z.object({}),
  output: BotState,
  run: ({ caller: { account_id } }, services) => botStatesOf(services, account_id),
});

/** Source: spec extra-facts §13. */
export const botChannels = query({
  name: 'botChannels',
  summary: 'Channels of all accounts that the bot should be in, for a bot that runs apart',
  rest: get('/v1/bot-status/channels'),
  pages: numbered('PaginatedBotChannelResult'),
  guard: [systemKeyOnly],
  input: z.object({ platform: z.enum(PLATFORMS) }),
  output: BotChannel,
  run: ({ input: { platform }, page }, { db }) =>
    rowsOf(db, page, BotChannel, {
      from: `(select account_id, id as connection_id, platform, platform_channel_id from channel_connections
              where platform = $1 and bot_enabled and not reconnect_required) c`,
      order: 'connection_id',
      values: [platform],
    }),
});
