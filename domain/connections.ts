import { z } from 'zod';
import { event, events, instant, type EventOf } from '../kernel/event';
import type { Decider } from '../kernel/decider';
import { DomainError } from '../kernel/errors';
import { release, reserve, type ReservationCommand } from './reservations';
import { unreachable } from './unreachable';
import { PLATFORMS, type Platform } from './vendors';

const account_id = z.uuid();
const connection_id = z.uuid();
const platform = z.enum(PLATFORMS);
const OF_CONNECTION = { audit: { target: ['connection', 'connection_id'] } } as const;

/**
 * What an account is connected to: one channel per platform, and shops. All of one account's connections are one
 * stream, so that "one per platform" is a rule of its state. A shop's webhook secret is never in an event: it is sealed
 * in a table of its own. One channel may be connected by several accounts; a shop domain by one (reserved in the same
 * append).
 */
export const CONNECTION_EVENTS = events({
  'connection:channel_connected': event(
    { account_id, connection_id, platform, platform_channel_id: z.string(), connected_at: instant() },
    // The first version carried the channel's name, which is a row now (access/channel-names.ts).
    { version: 2, upcast: [({ channel_name: _name, ...rest }) => rest], ...OF_CONNECTION },
  ),
  'connection:channel_disconnected': event(
    { account_id, connection_id, platform, disconnected_at: instant() },
    OF_CONNECTION,
  ),
  'connection:shop_connected': event(
    { account_id, connection_id, shop_domain: z.string(), connected_at: instant() },
    OF_CONNECTION,
  ),
  'connection:shop_disconnected': event(
    { account_id, connection_id, shop_domain: z.string(), disconnected_at: instant() },
    OF_CONNECTION,
  ),
});
export type ConnectionEvent = EventOf<typeof CONNECTION_EVENTS>;

export type ConnectionCommand =
  | {
      type: 'connection:connect_channel';
      account_id: string;
      connection_id: string;
      platform: Platform;
      platform_channel_id: string;
      now: string;
    }
  | { type: 'connection:disconnect_channel'; account_id: string; platform: Platform; now: string }
  | { type: 'connection:connect_shop'; account_id: string; connection_id: string; shop_domain: string; now: string }
  | { type: 'connection:disconnect_shop'; account_id: string; shop_domain: string; now: string }
  /** The account is gone. */
  | { type: 'connection:disconnect_all'; account_id: string; now: string };

export interface Connections {
  channels: ReadonlyMap<Platform, { connection_id: string; platform_channel_id: string }>;
  /** Shop domain to connection id. */
  shops: ReadonlyMap<string, string>;
}

const initialConnections: Connections = { channels: new Map(), shops: new Map() };
export const connectionsStream = (account_id: string): string => `connections-${account_id}`;
/**
 * A shop's domain as it is stored and looked up: lower-case host without scheme, port, path or final dot; null when the
 * text names no host.
 */
export function readShopDomain(text: string): string | null {
  const host = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/[/:].*$/, '')
    .replace(/\.$/, '');
  return host.length <= 253 && /^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/.test(host) ? host : null;
}

function decideConnection(state: Connections, command: ConnectionCommand): ConnectionEvent[] {
  const { account_id, now } = command;
  switch (command.type) {
    case 'connection:connect_channel': {
      const { connection_id, platform, platform_channel_id } = command;
      const present = state.channels.get(platform);
      if (present?.platform_channel_id === platform_channel_id) return [];
      if (present) throw new DomainError('PLATFORM_ALREADY_CONNECTED', { platform });
      return [
        {
          type: 'connection:channel_connected',
          account_id,
          connection_id,
          platform,
          platform_channel_id,
          connected_at: now,
        },
      ];
    }
    case 'connection:disconnect_channel': {
      const present = state.channels.get(command.platform);
      if (present === undefined) throw new DomainError('CONNECTION_NOT_FOUND', { platform: command.platform });
      const { connection_id } = present;
      return [
        {
          type: 'connection:channel_disconnected',
          account_id,
          connection_id,
          platform: command.platform,
          disconnected_at: now,
        },
      ];
    }
    case 'connection:connect_shop': {
      const shop_domain = readShopDomain(command.shop_domain);
      if (shop_domain === null) throw new DomainError('NOT_A_SHOP_DOMAIN', { shop_domain: command.shop_domain });
      if (state.shops.has(shop_domain)) return [];
      return [
        {
          type: 'connection:shop_connected',
          account_id,
          connection_id: command.connection_id,
          shop_domain,
          connected_at: now,
        },
      ];
    }
    case 'connection:disconnect_shop': {
      const shop_domain = readShopDomain(command.shop_domain);
      const connection_id = shop_domain === null ? undefined : state.shops.get(shop_domain);
      if (shop_domain === null || connection_id === undefined)
        throw new DomainError('CONNECTION_NOT_FOUND', { shop_domain });
      return [{ type: 'connection:shop_disconnected', account_id, connection_id, shop_domain, disconnected_at: now }];
    }
    case 'connection:disconnect_all':
      return [
        ...[...state.channels].map(([platform, { connection_id }]): ConnectionEvent => {
          const gone = { account_id, connection_id, platform, disconnected_at: now };
          return { type: 'connection:channel_disconnected', ...gone };
        }),
        ...[...state.shops].map(([shop_domain, connection_id]): ConnectionEvent => {
          const gone = { account_id, connection_id, shop_domain, disconnected_at: now };
          return { type: 'connection:shop_disconnected', ...gone };
        }),
      ];
    default:
      return unreachable(command);
  }
}

function evolveConnection(state: Connections, event: ConnectionEvent): Connections {
  switch (event.type) {
    case 'connection:channel_connected': {
      const { platform, connection_id, platform_channel_id } = event;
      return { ...state, channels: new Map(state.channels).set(platform, { connection_id, platform_channel_id }) };
    }
    case 'connection:channel_disconnected': {
      const channels = new Map(state.channels);
      channels.delete(event.platform);
      return { ...state, channels };
    }
    case 'connection:shop_connected':
      return { ...state, shops: new Map(state.shops).set(event.shop_domain, event.connection_id) };
    case 'connection:shop_disconnected': {
      const shops = new Map(state.shops);
      shops.delete(event.shop_domain);
      return { ...state, shops };
    }
    default:
      return unreachable(event);
  }
}

export const connections: Decider<Connections, ConnectionCommand, ConnectionEvent> = {
  initial: initialConnections,
  decide: decideConnection,
  evolve: evolveConnection,
};

/** Kind of the reservation that makes a shop one account's; its owner is the account's id. */
const SHOP_DOMAIN = 'shop_domain';

/** What these events reserve and give back: a shop is connected to one account. */
export function shopReservations(events: readonly ConnectionEvent[]): ReservationCommand[] {
  return events.flatMap((event) => {
    if (event.type === 'connection:shop_connected') return [reserve(SHOP_DOMAIN, event.shop_domain, event.account_id)];
    if (event.type === 'connection:shop_disconnected')
      return [release(SHOP_DOMAIN, event.shop_domain, event.account_id)];
    return [];
  });
}
