import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import type { JsonObject } from '../../lib/json/json';
import { readShopDomain } from '../billing/shop-domains';
import { unreachable } from '../common/unreachable';
import { BOT_PLATFORMS, CHANNEL_PLATFORMS, type BotPlatform, type ChannelPlatform } from '../common/vendors';
import {
  decideGuild,
  evolveGuild,
  NEW_GUILD,
  type DiscordGuildCommand,
  type DiscordGuildEvent,
  type DiscordGuildState,
} from './discord-guilds';

const account_id = z.uuid();
const connection_id = z.uuid();
const platform = z.enum(CHANNEL_PLATFORMS);
const bot_platform = z.enum(BOT_PLATFORMS);
const of_either = {
  account_id,
  connection_id,
  kind: z.enum(['channel', 'bot']),
  platform: z.enum([...CHANNEL_PLATFORMS, 'discord']),
};
const OF_CONNECTION = { audit: { target: ['connection', 'connection_id'] } } as const;
/** Later versions have more platforms, and are otherwise the same. */
const same = (data: JsonObject): JsonObject => data;

/**
 * Connections of an account: one channel and one bot per platform, and shops. All of one account's connections
 * are one stream, so that "one per platform" is a rule of its state. Tokens and a shop's webhook secret are never in an
 * event: they are sealed in tables of their own. One channel may be connected by several accounts; a shop domain and a
 * Discord server by one (reserved in the same append).
 */
export const CONNECTION_EVENTS = events({
  'connection:channel_connected': event(
    { account_id, connection_id, platform, platform_channel_id: z.string(), connected_at: instant() },
    // The first version carried the channel's name, which is a row now (services/connections/channel-names.ts).
    { version: 3, upcast: [({ channel_name: _name, ...rest }) => rest, same], ...OF_CONNECTION },
  ),
  'connection:channel_disconnected': event(
    { account_id, connection_id, platform, disconnected_at: instant() },
    { version: 2, upcast: [same], ...OF_CONNECTION },
  ),
  'connection:bot_connected': event(
    { account_id, connection_id, platform: bot_platform, platform_user_id: z.string(), connected_at: instant() },
    OF_CONNECTION,
  ),
  'connection:bot_disconnected': event(
    { account_id, connection_id, platform: bot_platform, platform_user_id: z.string(), disconnected_at: instant() },
    OF_CONNECTION,
  ),
  /** Somebody logged in at the vendor again: the tokens are new. */
  'connection:reconnected': event({ ...of_either, reconnected_at: instant() }, OF_CONNECTION),
  /** The vendor refuses the tokens that are kept: nothing is done with them until somebody logs in there again. */
  'connection:reconnect_required': event({ ...of_either, required_at: instant() }, OF_CONNECTION),
  'connection:reconnect_cleared': event({ ...of_either, cleared_at: instant() }, OF_CONNECTION),
  /** Whether the bot acts in the channel. */
  'connection:bot_toggled': event(
    { account_id, connection_id, platform, enabled: z.boolean(), toggled_at: instant() },
    OF_CONNECTION,
  ),
  /** Restarts the vendor connections of this channel. */
  'connection:bot_rejoined': event({ account_id, connection_id, platform, rejoined_at: instant() }, OF_CONNECTION),
  'connection:shop_connected': event(
    { account_id, connection_id, shop_domain: z.string(), connected_at: instant() },
    OF_CONNECTION,
  ),
  'connection:shop_disconnected': event(
    { account_id, connection_id, shop_domain: z.string(), disconnected_at: instant() },
    OF_CONNECTION,
  ),
});
export type ConnectionEvent = EventOf<typeof CONNECTION_EVENTS> | DiscordGuildEvent;

type Connecting<Platform> = { account_id: string; connection_id: string; platform: Platform; now: string };

export type ConnectionCommand =
  | (Connecting<ChannelPlatform> & { type: 'connection:connect_channel'; platform_channel_id: string })
  | (Connecting<BotPlatform> & { type: 'connection:connect_bot'; platform_user_id: string })
  /** The vendor has given new tokens for what is connected. */
  | { type: 'connection:renew'; account_id: string; connection_id: string; now: string }
  | { type: 'connection:require_reconnect'; account_id: string; connection_id: string; now: string }
  | { type: 'connection:clear_reconnect'; account_id: string; connection_id: string; now: string }
  | { type: 'connection:toggle_bot'; account_id: string; platform: ChannelPlatform; enabled: boolean; now: string }
  | { type: 'connection:rejoin_bot'; account_id: string; platform: ChannelPlatform; now: string }
  | { type: 'connection:disconnect'; account_id: string; kind: 'channel' | 'bot'; connection_id: string; now: string }
  | { type: 'connection:disconnect_channel'; account_id: string; platform: ChannelPlatform; now: string }
  | { type: 'connection:connect_shop'; account_id: string; connection_id: string; shop_domain: string; now: string }
  | { type: 'connection:disconnect_shop'; account_id: string; shop_domain: string; now: string }
  /** The account is gone. */
  | { type: 'connection:disconnect_all'; account_id: string; now: string }
  | DiscordGuildCommand;

interface Channel {
  connection_id: string;
  platform_channel_id: string;
  reconnect_required: boolean;
  bot_enabled: boolean;
}

interface Bot {
  connection_id: string;
  platform_user_id: string;
  reconnect_required: boolean;
  /** Of a bot of Discord. */
  guild: DiscordGuildState;
}

export interface Connections {
  channels: ReadonlyMap<ChannelPlatform, Channel>;
  bots: ReadonlyMap<BotPlatform, Bot>;
  /** Shop domain to connection id. */
  shops: ReadonlyMap<string, string>;
}

const initialConnections: Connections = { channels: new Map(), bots: new Map(), shops: new Map() };
export const connectionsStream = (account_id: string): string => `connections-${account_id}`;

/** Number that counts against `max_integrations`. Source: spec rulings, "max_integrations". */
export const integrationsOf = ({ channels, shops }: Connections): number => channels.size + shops.size;

/** A channel or bot by its connection's id. */
export type FoundConnection =
  | { kind: 'channel'; platform: ChannelPlatform; reconnect_required: boolean }
  | { kind: 'bot'; platform: BotPlatform; reconnect_required: boolean };

export function connectionOf({ channels, bots }: Connections, id: string): FoundConnection | null {
  for (const [platform, { connection_id, reconnect_required }] of channels)
    if (connection_id === id) return { kind: 'channel', platform, reconnect_required };
  for (const [platform, { connection_id, reconnect_required }] of bots)
    if (connection_id === id) return { kind: 'bot', platform, reconnect_required };
  return null;
}

function decideConnection(state: Connections, command: ConnectionCommand): ConnectionEvent[] {
  const { account_id, now } = command;
  switch (command.type) {
    case 'connection:connect_channel': {
      const { type: _type, now: connected_at, ...connected } = command;
      const present = state.channels.get(command.platform);
      if (present?.platform_channel_id === command.platform_channel_id) return [];
      if (present) throw new DomainError('PLATFORM_ALREADY_CONNECTED', { platform: command.platform });
      return [{ type: 'connection:channel_connected', ...connected, connected_at }];
    }
    case 'connection:connect_bot': {
      const { type: _type, now: connected_at, ...connected } = command;
      const present = state.bots.get(command.platform);
      if (present?.platform_user_id === command.platform_user_id) return [];
      if (present) throw new DomainError('PLATFORM_ALREADY_CONNECTED', { platform: command.platform });
      return [{ type: 'connection:bot_connected', ...connected, connected_at }];
    }
    case 'connection:renew':
    case 'connection:require_reconnect':
    case 'connection:clear_reconnect':
      return decideTokens(state, command);
    case 'connection:toggle_bot':
    case 'connection:rejoin_bot':
      return decideBotControl(state, command);
    case 'connection:disconnect_channel': {
      const present = state.channels.get(command.platform);
      if (present === undefined) throw new DomainError('CONNECTION_NOT_FOUND', { platform: command.platform });
      return [channelGone(account_id, command.platform, present, now)];
    }
    case 'connection:disconnect': {
      const { kind, connection_id } = command;
      const found = connectionOf(state, connection_id);
      if (found?.kind !== kind) throw new DomainError('CONNECTION_NOT_FOUND', { connection_id });
      return found.kind === 'channel'
        ? [channelGone(account_id, found.platform, state.channels.get(found.platform)!, now)]
        : [botGone(account_id, found.platform, state.bots.get(found.platform)!, now)];
    }
    case 'connection:connect_shop': {
      const shop_domain = readShopDomain(command.shop_domain);
      if (shop_domain === null) throw new DomainError('NOT_A_SHOP_DOMAIN', { shop_domain: command.shop_domain });
      if (state.shops.has(shop_domain)) return [];
      const { connection_id } = command;
      return [{ type: 'connection:shop_connected', account_id, connection_id, shop_domain, connected_at: now }];
    }
    case 'connection:disconnect_shop': {
      const shop_domain = readShopDomain(command.shop_domain);
      const connection_id = shop_domain === null ? undefined : state.shops.get(shop_domain);
      if (shop_domain === null || connection_id === undefined)
        throw new DomainError('CONNECTION_NOT_FOUND', { shop_domain });
      return [shopGone(account_id, shop_domain, connection_id, now)];
    }
    case 'connection:disconnect_all':
      return [
        ...[...state.channels].map(([platform, channel]) => channelGone(account_id, platform, channel, now)),
        ...[...state.bots].map(([platform, bot]) => botGone(account_id, platform, bot, now)),
        ...[...state.shops].map(([shop_domain, connection_id]) =>
          shopGone(account_id, shop_domain, connection_id, now),
        ),
      ];
    case 'discord_guild:configure':
    case 'discord_guild:set_channel':
    case 'discord_guild:remove_channel':
      return decideGuild(state.bots.get('discord'), command);
    default:
      return unreachable(command);
  }
}

type TokenCommand = Extract<
  ConnectionCommand,
  { type: 'connection:renew' | 'connection:require_reconnect' | 'connection:clear_reconnect' }
>;

function decideTokens(state: Connections, { type, account_id, connection_id, now }: TokenCommand): ConnectionEvent[] {
  const found = connectionOf(state, connection_id);
  if (found === null) throw new DomainError('CONNECTION_NOT_FOUND', { connection_id });
  const { reconnect_required, kind, platform } = found;
  const of = { account_id, connection_id, kind, platform };
  if (type === 'connection:renew') return [{ type: 'connection:reconnected', ...of, reconnected_at: now }];
  if (type === 'connection:require_reconnect')
    return reconnect_required ? [] : [{ type: 'connection:reconnect_required', ...of, required_at: now }];
  return reconnect_required ? [{ type: 'connection:reconnect_cleared', ...of, cleared_at: now }] : [];
}

type BotControl = Extract<ConnectionCommand, { type: 'connection:toggle_bot' | 'connection:rejoin_bot' }>;

function decideBotControl({ channels }: Connections, command: BotControl): ConnectionEvent[] {
  const { account_id, platform, now } = command;
  const channel = channels.get(platform);
  if (channel === undefined) throw new DomainError('CONNECTION_NOT_FOUND', { platform });
  const { connection_id, bot_enabled } = channel;
  const of = { account_id, connection_id, platform };
  if (command.type === 'connection:rejoin_bot') {
    if (!bot_enabled) throw new DomainError('BOT_PAUSED', { platform });
    return [{ type: 'connection:bot_rejoined', ...of, rejoined_at: now }];
  }
  const { enabled } = command;
  return enabled === bot_enabled ? [] : [{ type: 'connection:bot_toggled', ...of, enabled, toggled_at: now }];
}

function channelGone(account_id: string, platform: ChannelPlatform, channel: Channel, now: string): ConnectionEvent {
  const { connection_id } = channel;
  return { type: 'connection:channel_disconnected', account_id, connection_id, platform, disconnected_at: now };
}

function botGone(account_id: string, platform: BotPlatform, bot: Bot, now: string): ConnectionEvent {
  const { connection_id, platform_user_id } = bot;
  const gone = { account_id, connection_id, platform, platform_user_id, disconnected_at: now };
  return { type: 'connection:bot_disconnected', ...gone };
}

function shopGone(account_id: string, shop_domain: string, connection_id: string, now: string): ConnectionEvent {
  return { type: 'connection:shop_disconnected', account_id, connection_id, shop_domain, disconnected_at: now };
}

function evolveConnection(state: Connections, event: ConnectionEvent): Connections {
  switch (event.type) {
    case 'connection:channel_connected': {
      const { platform, connection_id, platform_channel_id } = event;
      const channel = { connection_id, platform_channel_id, reconnect_required: false, bot_enabled: true };
      return { ...state, channels: new Map(state.channels).set(platform, channel) };
    }
    case 'connection:channel_disconnected':
      return { ...state, channels: without(state.channels, event.platform) };
    case 'connection:bot_connected': {
      const { platform, connection_id, platform_user_id } = event;
      const bot = { connection_id, platform_user_id, reconnect_required: false, guild: NEW_GUILD };
      return { ...state, bots: new Map(state.bots).set(platform, bot) };
    }
    case 'connection:bot_disconnected':
      return { ...state, bots: without(state.bots, event.platform) };
    case 'connection:reconnected':
    case 'connection:reconnect_cleared':
      return flagged(state, event.connection_id, false);
    case 'connection:reconnect_required':
      return flagged(state, event.connection_id, true);
    case 'connection:bot_toggled': {
      const channel = state.channels.get(event.platform);
      if (channel === undefined) return state;
      const toggled = { ...channel, bot_enabled: event.enabled };
      return { ...state, channels: new Map(state.channels).set(event.platform, toggled) };
    }
    case 'connection:bot_rejoined':
      return state;
    case 'connection:shop_connected':
      return { ...state, shops: new Map(state.shops).set(event.shop_domain, event.connection_id) };
    case 'connection:shop_disconnected':
      return { ...state, shops: without(state.shops, event.shop_domain) };
    case 'discord_guild:configured':
    case 'discord_guild:channel_set':
    case 'discord_guild:channel_removed': {
      const bot = state.bots.get('discord');
      if (bot?.connection_id !== event.connection_id) return state;
      return { ...state, bots: new Map(state.bots).set('discord', { ...bot, guild: evolveGuild(bot.guild, event) }) };
    }
    default:
      return unreachable(event);
  }
}

function without<Key, Value>(map: ReadonlyMap<Key, Value>, key: Key): ReadonlyMap<Key, Value> {
  const left = new Map(map);
  left.delete(key);
  return left;
}

function flagged(state: Connections, id: string, reconnect_required: boolean): Connections {
  const mark = <Platform, One extends { connection_id: string }>(all: ReadonlyMap<Platform, One>) =>
    new Map(
      [...all].map(([platform, one]) => [platform, one.connection_id === id ? { ...one, reconnect_required } : one]),
    );
  return { ...state, channels: mark(state.channels), bots: mark(state.bots) };
}

export const connections: Decider<Connections, ConnectionCommand, ConnectionEvent> = {
  initial: initialConnections,
  decide: decideConnection,
  evolve: evolveConnection,
};
