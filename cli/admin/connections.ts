import { readChannelName, writeChannelName } from '../../services/connections/channel-names';
import { announceChannel, announceShop, SHOP_SECRET } from '../../services/connections/connection-lookup';
import { newId } from '../../app/write-path/event-ids';
import { handle } from '../../app/write-path/command-handler';
import { load } from '../../app/write-path/aggregate-cache';
import { connectionReservations } from '../../domain/connections/connection-reservations';
import { connections, connectionsStream } from '../../domain/connections/connections';
import { readShopDomain } from '../../domain/billing/shop-domains';
import { DomainError } from '../../kernel/errors';
import { Taken } from '../../domain/common/reservations';
import type { Platform } from '../../domain/common/vendors';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';

/** The account is connected to another channel of that platform. */
export class OtherChannelConnected extends AdminError {}

export interface ChannelToConnect {
  account_id: string;
  platform: Platform;
  /** The channel's id there. */
  platform_channel_id: string;
  channel_name: string;
  /** Absent: a new one. */
  connection_id?: string;
}

/** Connects a channel; returns the existing connection to the same one. @throws OtherChannelConnected */
export async function connectChannel(
  services: AdminServices,
  channel: ChannelToConnect,
): Promise<{ connection_id: string; created: boolean }> {
  const { account_id, platform } = channel;
  const { channel_name, ...command } = channel;
  const connection_id = channel.connection_id ?? (await nextId(services, account_id, platform));
  // Before the event, so that an interrupted call leaves no channel without a name.
  const names = { db: services.db, texts: createPersonalTexts(services.subject_keys) };
  if ((await readChannelName(names, channel)) !== channel_name) await writeChannelName(names, channel, channel_name);
  try {
    const { state, events } = await handle(asOperator(OPERATOR), services, {
      decider: connections,
      stream: connectionsStream(account_id),
      command: { type: 'connection:connect_channel', ...command, connection_id, now: nowText() },
    });
    await announceChannel(services.relay, platform, channel.platform_channel_id);
    return { connection_id: state.channels.get(platform)!.connection_id, created: events.length > 0 };
  } catch (error) {
    if (!(error instanceof DomainError && error.reason === 'PLATFORM_ALREADY_CONNECTED')) throw error;
    throw new OtherChannelConnected(`account ${account_id} is connected to another ${platform} channel already`);
  }
}

export interface ShopToConnect {
  account_id: string;
  shop_domain: string;
  /** Signing secret of the shop's deliveries. */
  secret: string;
  /** Absent: a new one. */
  connection_id?: string;
}

/**
 * Connects a shop. Its secret is stored first, so that no delivery finds a shop without one. A repetition replaces the
 * secret.
 * @throws AdminError when another account has the shop
 */
export async function connectShop(
  services: AdminServices,
  shop: ShopToConnect,
): Promise<{ connection_id: string; created: boolean }> {
  const { account_id } = shop;
  const shop_domain = readShopDomain(shop.shop_domain);
  if (shop_domain === null) throw new AdminError(`${shop.shop_domain} is not the domain of a shop`);
  const held = await load(services.events, connections, connectionsStream(account_id));
  const connection_id =
    held?.state.shops.get(shop_domain) ?? shop.connection_id ?? (await nextId(services, account_id, shop_domain));
  await services.db.query(
    `insert into connection_secrets (connection_id, sealed) values ($1, $2)
     on conflict (connection_id) do update set sealed = excluded.sealed, changed_at = now()`,
    [connection_id, services.secrets.seal(shop.secret, SHOP_SECRET)],
  );
  try {
    const { events } = await handle(asOperator(OPERATOR), services, {
      decider: connections,
      stream: connectionsStream(account_id),
      command: { type: 'connection:connect_shop', account_id, connection_id, shop_domain, now: nowText() },
      reservations: connectionReservations,
    });
    await announceShop(services.relay, shop_domain);
    return { connection_id, created: events.length > 0 };
  } catch (error) {
    if (!(error instanceof Taken)) throw error;
    await services.db.query('delete from connection_secrets where connection_id = $1', [connection_id]);
    throw new AdminError(`${shop_domain} is connected to another account already`);
  }
}

/**
 * Id of the next connection, constant until the account's connections change, so that a repetition resumes an
 * interrupted call under the same id.
 */
async function nextId({ events }: AdminServices, account_id: string, what: string): Promise<string> {
  const held = await load(events, connections, connectionsStream(account_id));
  const seed = `${account_id}\n${held?.revision ?? 'none'}`;
  return newId({ idempotency_seed: seed }, `connection\n${what}`);
}
