import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { unreachable } from '../common/unreachable';

/** Where the installation may have an app of its own. Source: spec extra-facts §27. */
export const APP_PLATFORMS = ['twitch', 'youtube', 'kick', 'trovo', 'discord', 'spotify'] as const;
export type AppPlatform = (typeof APP_PLATFORMS)[number];

/** App of a connection: the installation's, or one that each account registers itself. */
export const CREDENTIAL_MODES = ['system', 'account'] as const;
export type CredentialMode = (typeof CREDENTIAL_MODES)[number];

const platform = z.enum(APP_PLATFORMS);
const mode = z.enum(CREDENTIAL_MODES);
const modes = { channel_mode: mode, bot_mode: mode };
const OF_PLATFORM = { audit: { target: ['system_connection', 'platform'] } } as const;
const OF_BOT = { audit: { ...OF_PLATFORM.audit, by: ['connection_id'] } } as const;
const of_bot = { platform, connection_id: z.uuid() };

/**
 * The installation's own side at a vendor: its app, the choice of app for connections, and the bot that acts where an
 * account has none. The app's secret and the bot's tokens are sealed rows.
 */
export const SYSTEM_CONNECTION_EVENTS = events({
  'system_connection:app_set': event({ platform, client_id: z.string(), set_at: instant() }, OF_PLATFORM),
  'system_connection:app_removed': event({ platform, removed_at: instant() }, OF_PLATFORM),
  'system_connection:modes_set': event({ platform, ...modes, set_at: instant() }, OF_PLATFORM),
  'system_connection:bot_connected': event(
    { ...of_bot, platform_user_id: z.string(), connected_at: instant() },
    OF_BOT,
  ),
  'system_connection:bot_disconnected': event({ ...of_bot, disconnected_at: instant() }, OF_BOT),
  'system_connection:bot_reconnected': event({ ...of_bot, reconnected_at: instant() }, OF_BOT),
  'system_connection:bot_reconnect_required': event({ ...of_bot, required_at: instant() }, OF_BOT),
});
export type SystemConnectionEvent = EventOf<typeof SYSTEM_CONNECTION_EVENTS>;

export type SystemConnectionCommand =
  | {
      type: 'system_connection:set_app';
      platform: AppPlatform;
      client_id: string;
      now: string;
    }
  | { type: 'system_connection:remove_app'; platform: AppPlatform; now: string }
  | ({ type: 'system_connection:set_modes'; platform: AppPlatform; now: string } & Partial<CredentialModes>)
  | {
      type: 'system_connection:connect_bot';
      platform: AppPlatform;
      connection_id: string;
      platform_user_id: string;
      now: string;
    }
  | { type: 'system_connection:disconnect_bot'; platform: AppPlatform; now: string }
  | {
      type: 'system_connection:require_reconnect' | 'system_connection:clear_reconnect';
      platform: AppPlatform;
      connection_id: string;
      now: string;
    };

export interface CredentialModes {
  channel_mode: CredentialMode | undefined;
  bot_mode: CredentialMode | undefined;
}

/** State of the installation at one vendor. */
export interface SystemConnection {
  client_id: string | null;
  channel_mode: CredentialMode;
  bot_mode: CredentialMode;
  bot: { connection_id: string; platform_user_id: string; reconnect_required: boolean } | null;
}

export const systemConnectionStream = (platform: AppPlatform): string => `system-connection-${platform}`;

export const systemConnection: Decider<SystemConnection, SystemConnectionCommand, SystemConnectionEvent> = {
  initial: { client_id: null, channel_mode: 'system', bot_mode: 'system', bot: null },
  decide(state, command) {
    const { platform, now } = command;
    switch (command.type) {
      case 'system_connection:set_app':
        // The same id may come with another secret, which no event carries: that it was set is told each time.
        return [{ type: 'system_connection:app_set', platform, client_id: command.client_id, set_at: now }];
      case 'system_connection:remove_app':
        if (state.client_id === null) throw new DomainError('SYSTEM_CONNECTION_NOT_FOUND', { platform });
        return [{ type: 'system_connection:app_removed', platform, removed_at: now }];
      case 'system_connection:set_modes': {
        const { channel_mode = state.channel_mode, bot_mode = state.bot_mode } = command;
        if (channel_mode === state.channel_mode && bot_mode === state.bot_mode) return [];
        return [{ type: 'system_connection:modes_set', platform, channel_mode, bot_mode, set_at: now }];
      }
      case 'system_connection:connect_bot': {
        const { connection_id, platform_user_id } = command;
        if (state.bot !== null && state.bot.platform_user_id !== platform_user_id)
          throw new DomainError('PLATFORM_ALREADY_CONNECTED', { platform });
        if (state.bot === null) {
          const of = { platform, connection_id, platform_user_id };
          return [{ type: 'system_connection:bot_connected', ...of, connected_at: now }];
        }
        const of = { platform, connection_id: state.bot.connection_id };
        return [{ type: 'system_connection:bot_reconnected', ...of, reconnected_at: now }];
      }
      case 'system_connection:disconnect_bot': {
        if (state.bot === null) throw new DomainError('CONNECTION_NOT_FOUND', { platform });
        const { connection_id } = state.bot;
        return [{ type: 'system_connection:bot_disconnected', platform, connection_id, disconnected_at: now }];
      }
      case 'system_connection:require_reconnect':
      case 'system_connection:clear_reconnect': {
        const { type, connection_id } = command;
        if (state.bot?.connection_id !== connection_id) throw new DomainError('CONNECTION_NOT_FOUND', { platform });
        const required = type === 'system_connection:require_reconnect';
        if (state.bot.reconnect_required === required) return [];
        if (!required)
          return [{ type: 'system_connection:bot_reconnected', platform, connection_id, reconnected_at: now }];
        return [{ type: 'system_connection:bot_reconnect_required', platform, connection_id, required_at: now }];
      }
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'system_connection:app_set':
        return { ...state, client_id: event.client_id };
      case 'system_connection:app_removed':
        return { ...state, client_id: null };
      case 'system_connection:modes_set':
        return { ...state, channel_mode: event.channel_mode, bot_mode: event.bot_mode };
      case 'system_connection:bot_connected': {
        const { connection_id, platform_user_id } = event;
        return { ...state, bot: { connection_id, platform_user_id, reconnect_required: false } };
      }
      case 'system_connection:bot_disconnected':
        return { ...state, bot: null };
      case 'system_connection:bot_reconnected':
        return { ...state, bot: state.bot && { ...state.bot, reconnect_required: false } };
      case 'system_connection:bot_reconnect_required':
        return { ...state, bot: state.bot && { ...state.bot, reconnect_required: true } };
      default:
        return unreachable(event);
    }
  },
};
