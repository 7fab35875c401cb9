import { type ConnectionTokens, ReconnectRequired, TokenAway } from '../../access/connection-tokens';
import type { ExistingConnections } from '../../access/living-connections';
import { DISCORD_BOT, type Guilds } from '../discord/guilds';
import { ConnectionRefused, LinkLost, PauseAsked } from './adapter';
import type { AdaptersDeps } from './adapters';

export interface LinkedConnectionsDeps {
  living: ExistingConnections;
  tokens: Pick<ConnectionTokens, 'token'>;
  guilds: Pick<Guilds, 'any'>;
  bot_token: string;
}

/**
 * The connections that are held, with their tokens. One that nobody has gone through the vendor's login for has no
 * token and is received by webhooks alone.
 */
export function linkedConnections(
  deps: LinkedConnectionsDeps,
): Pick<AdaptersDeps, 'connections' | 'token' | 'refused'> {
  const { living, tokens, guilds, bot_token } = deps;
  return {
    connections: {
      async list(vendor) {
        // One connection for all servers that the bot was let into.
        if (vendor === 'discord') return (await guilds.any()) ? [DISCORD_BOT] : [];
        const all = await living.all(vendor);
        return all.flatMap(({ connection_id, account_id, platform_channel_id, client_id, kind, since, ...rest }) => {
          if (kind === 'bot' || (kind === 'channel' && client_id === null)) return [];
          const connection = { connection_id, account_id, channel_id: platform_channel_id, client_id, since };
          return [rest.reconnect_required ? { ...connection, flagged: true as const } : connection];
        });
      },
      onChange: (changed) => living.onChange(changed),
    },
    async token({ connection_id }, refused) {
      if (connection_id === DISCORD_BOT.connection_id) {
        if (refused !== undefined) throw new ConnectionRefused('no_token');
        return bot_token;
      }
      try {
        return await tokens.token(connection_id, refused);
      } catch (error) {
        if (error instanceof ReconnectRequired) throw new ConnectionRefused('no_token');
        if (!(error instanceof TokenAway)) throw error;
        const { message, retry_after_ms } = error;
        throw retry_after_ms === undefined
          ? new LinkLost(message, { cause: error })
          : new PauseAsked(message, retry_after_ms, { cause: error });
      }
    },
    // Whoever asks with the refused token has the connection flagged where no other one is to be had.
    async refused({ connection_id }) {
      if (connection_id === DISCORD_BOT.connection_id) return;
      const kept = await tokens.token(connection_id).catch(() => undefined);
      if (kept !== undefined) await tokens.token(connection_id, kept).catch(() => undefined);
    },
  };
}
