import { LRUCache } from 'lru-cache';
import type { ChannelPlatform } from '../../domain/common/vendors';
import type { Database } from '../../engines/postgres/port';
import type { Relay } from '../../engines/relay/port';
import type { ConnectedAccount, ConnectionLookup } from './connections';
import type { SecretBox } from '../../privacy/secrets/port';

/** Purpose under which the secret box seals a shop's signing secret. */
export const SHOP_SECRET = 'shop-signing-secret';
/** Relay topic for the keys of changed connections. */
const CHANGED = 'connections';
const channelKey = (platform: string, platform_channel_id: string) => `${platform}:${platform_channel_id}`;
const shopKey = (shop_domain: string) => `shopify:${shop_domain}`;

/**
 * Announces to every node that a channel's connections have changed. At most once: the lookup's short cache covers a
 * lost message.
 */
export const announceChannel = (relay: Relay, platform: ChannelPlatform, platform_channel_id: string): Promise<void> =>
  relay.publish(CHANGED, channelKey(platform, platform_channel_id));
/** Announces a changed shop, by its normalised domain. */
export const announceShop = (relay: Relay, shop_domain: string): Promise<void> =>
  relay.publish(CHANGED, shopKey(shop_domain));

const KNOWN_MS = 5000;
/** Shorter, so that deliveries for a newly connected channel are soon no longer dropped as unknown. */
const UNKNOWN_MS = 1000;

/**
 * {@link ConnectionLookup} over the read model, with a cache of a few seconds that {@link announceChannel} and {@link
 * announceShop} invalidate; empty results are cached too. `close` ends its subscription.
 */
export function createConnectionLookup(deps: {
  db: Database;
  secrets: SecretBox;
  relay: Relay;
}): ConnectionLookup & { close(): void } {
  const { db, secrets } = deps;
  const remembered = new LRUCache<string, readonly ConnectedAccount[]>({ max: 50_000, ttl: KNOWN_MS });
  const loading = new Map<string, Promise<readonly ConnectedAccount[]>>();
  const unsubscribe = deps.relay.subscribe(CHANGED, (key) => {
    remembered.delete(key);
    // A load that began before the change must not be cached after it.
    loading.delete(key);
  });

  function find(key: string, load: () => Promise<readonly ConnectedAccount[]>): Promise<readonly ConnectedAccount[]> {
    const known = remembered.get(key);
    if (known) return Promise.resolve(known);
    const under_way = loading.get(key);
    if (under_way) return under_way;
    const started: Promise<readonly ConnectedAccount[]> = load().then(
      (accounts) => {
        if (loading.get(key) === started) {
          loading.delete(key);
          remembered.set(key, accounts, { ttl: accounts.length > 0 ? KNOWN_MS : UNKNOWN_MS });
        }
        return accounts;
      },
      (error: unknown) => {
        if (loading.get(key) === started) loading.delete(key);
        throw error;
      },
    );
    loading.set(key, started);
    return started;
  }

  const readByChannel: ConnectionLookup['readByChannel'] = async (platform, platform_channel_id) => {
    const rows = await db.query(
      `select c.account_id, g.subscriptions from channel_connections c
       left join connection_grants g on g.connection_id = c.id
       where c.platform = $1 and c.platform_channel_id = $2 order by c.connected_at, c.id`,
      [platform, platform_channel_id],
      'connections-by-channel',
    );
    return rows.map(({ account_id, subscriptions }) => ({ account_id, subscriptions, secret: null }));
  };

  return {
    byChannel: (platform, platform_channel_id) =>
      find(channelKey(platform, platform_channel_id), () => readByChannel(platform, platform_channel_id)),
    readByChannel,

    async byShopDomain(shop_domain) {
      const [account] = await find(shopKey(shop_domain), async () => {
        const rows = await db.query(
          `select c.account_id, s.sealed from shop_connections c
           left join connection_secrets s on s.connection_id = c.id where c.shop_domain = $1`,
          [shop_domain],
          'connections-by-shop',
        );
        return rows.map(({ account_id, sealed }) => ({
          account_id,
          subscriptions: null,
          secret: sealed === null ? null : secrets.open(sealed, SHOP_SECRET).toString(),
        }));
      });
      return account ?? null;
    },

    close: unsubscribe,
  };
}
