import { z } from 'zod';
import { BotState, botStatesOf } from '../../views/connections/bot-states';
import {
  clearReconnect,
  CONNECTION_NOT_FOUND,
  disconnect,
  ConnectionResult,
} from '../../services/connections/disconnecting';
import { command, conflict, del, notFound, permission, post, put } from '../../app/operation';
import { connections, connectionsStream } from '../../domain/connections/connections';
import { PLATFORMS } from '../../domain/common/vendors';

const of_platform = { platform: z.enum(PLATFORMS) };

/** Disconnects a bot; a reactor then revokes its tokens at the platform. Source: spec doc1 §5.10. */
export const disconnectBotConnection = command({
  name: 'disconnectBotConnection',
  summary: 'Takes a bot off the active account',
  rest: del('/v1/bot-connections/{id}'),
  guard: [permission('bot-connections:delete')],
  input: z.object({ id: z.uuid() }),
  output: ConnectionResult,
  errors: CONNECTION_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }, services) {
    await disconnect(act, services, { account_id, connection_id: id, kind: 'bot' });
    return { success: true };
  },
});

export const clearBotConnectionReconnectFlag = command({
  name: 'clearBotConnectionReconnectFlag',
  summary: 'Clears the reconnect prompt of a bot: its tokens are tried again',
  rest: put('/v1/bot-connections/{id}/reconnect-flag', { envelope: 'bare' }),
  guard: [permission('bot-connections:create')],
  input: z.object({ id: z.uuid() }),
  output: ConnectionResult,
  errors: CONNECTION_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, act }, services) {
    await clearReconnect(act, services, { account_id, connection_id: id, kind: 'bot' });
    return { success: true };
  },
});

const NO_CHANNEL = { CONNECTION_NOT_FOUND: notFound('No channel of this platform is connected') };

/** Source: spec extra-facts §13. */
export const toggleBotForPlatform = command({
  name: 'toggleBotForPlatform',
  summary: "Lets the bot act in the account's channel of a platform, or pauses it there",
  rest: post('/v1/bot-toggle'),
  guard: [permission('bot-connections:create')],
  input: z.object({ ...of_platform, enabled: z.boolean() }),
  output: BotState,
  errors: NO_CHANNEL,
  async run({ input: { platform, enabled }, caller: { account_id }, act }, services) {
    const toggle = { type: 'connection:toggle_bot', account_id, platform, enabled } as const;
    await act(connections, connectionsStream(account_id), toggle);
    const [state] = await botStatesOf(services, account_id, platform);
    return state!;
  },
});

/** Source: spec extra-facts §13. */
export const rejoinBot = command({
  name: 'rejoinBot',
  summary: "Lets the bot leave the account's channel of a platform and join it anew",
  rest: post('/v1/bot-rejoin'),
  guard: [permission('bot-connections:create')],
  input: z.object(of_platform),
  output: BotState,
  errors: { ...NO_CHANNEL, BOT_PAUSED: conflict('The bot is paused for this platform: let it act first') },
  async run({ input: { platform }, caller: { account_id }, act }, services) {
    const rejoin = { type: 'connection:rejoin_bot', account_id, platform } as const;
    await act(connections, connectionsStream(account_id), rejoin);
    const [state] = await botStatesOf(services, account_id, platform);
    return state!;
  },
});
