import {
  type ConnectionTokens,
  ReconnectRequired,
  TokenUnavailable,
} from '../../../services/connections/connection-tokens';
import type { ExistingConnections } from '../../../services/connections/active-connections';
import type { Guilds } from '../../discord/guilds';
import { isBot, MAX_GUILDS, shardConnections, type Shards } from '../../discord/shards';
import { ConnectionRefused, LinkLost, PauseAsked } from './adapter';
import type { AdaptersDeps } from './adapters';

export interface LinkedConnectionsDeps {
  living: ExistingConnections;
  tokens: Pick<ConnectionTokens, 'token'>;
  guilds: Pick<Guilds, 'count'>;
  shards: Shards;
  bot_token: string;
}

/**
 * Connections to hold, with their tokens. A connection without the vendor's login has no token and receives by webhooks
 * alone.
 */
export function linkedConnections(
  deps: LinkedConnectionsDeps,
): Pick<AdaptersDeps, 'connections' | 'token' | 'refused'> {
  const { living, tokens, guilds, shards, bot_token } = deps;
  return {
    connections: {
      async list(vendor) {
        if (vendor === 'discord') {
          const count = await guilds.count();
          return count === 0 ? [] : shardConnections(await shards.atLeast(Math.ceil(count / MAX_GUILDS)));
        }
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
      if (isBot({ connection_id })) {
        if (refused !== undefined) throw new ConnectionRefused('no_token');
        return bot_token;
      }
      try {
        return await tokens.token(connection_id, refused);
      } catch (error) {
        if (error instanceof ReconnectRequired) throw new ConnectionRefused('no_token');
        if (!(error instanceof TokenUnavailable)) throw error;
        const { message, retry_after_ms } = error;
        throw retry_after_ms === undefined
          ? new LinkLost(message, { cause: error })
          : new PauseAsked(message, retry_after_ms, { cause: error });
      }
    },
    // Requesting a token in place of the refused one flags the connection when no other token is available.
    async refused({ connection_id }) {
      if (isBot({ connection_id })) return;
      const kept = await tokens.token(connection_id).catch(() => undefined);
      if (kept !== undefined) await tokens.token(connection_id, kept).catch(() => undefined);
    },
  };
}
