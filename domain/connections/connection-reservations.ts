import type { ConnectionEvent } from './connections';
import { release, reservationStream, reserve, type ReservationCommand } from '../common/reservations';

/** Kinds of the reservations that make a shop and a Discord server one account's; their owner is the account's id. */
const SHOP_DOMAIN = 'shop_domain';
const DISCORD_GUILD = 'discord_guild';

/** Stream of the present and former holders of a Discord server. */
export const guildStream = (guild_id: string): string => reservationStream(DISCORD_GUILD, guild_id);

/** Reservations that these events make and release: a shop and a Discord server are connected to one account. */
export function connectionReservations(events: readonly ConnectionEvent[]): ReservationCommand[] {
  return events.flatMap((event) => {
    const { account_id } = event;
    if (event.type === 'connection:shop_connected') return [reserve(SHOP_DOMAIN, event.shop_domain, account_id)];
    if (event.type === 'connection:shop_disconnected') return [release(SHOP_DOMAIN, event.shop_domain, account_id)];
    if (event.type === 'connection:bot_connected' && event.platform === 'discord')
      return [reserve(DISCORD_GUILD, event.platform_user_id, account_id)];
    if (event.type === 'connection:bot_disconnected' && event.platform === 'discord')
      return [release(DISCORD_GUILD, event.platform_user_id, account_id)];
    return [];
  });
}
