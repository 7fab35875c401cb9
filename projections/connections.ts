import { ACCOUNT_EVENTS } from '../domain/accounts';
import { CONNECTION_EVENTS } from '../domain/connections';
import { sql } from '../kernel/sql';
import { all, handled, last, pick } from './runtime/handlers';

/**
 * Channels and shops that accounts are connected to; ingest finds the account of a delivery here. A dissolved account
 * is connected to nothing, before it was taken off everything (reactors/accounts.ts).
 */
export const connections = handled({
  name: 'connections',
  version: 2,
  tables: ['channel_connections', 'shop_connections'],
  events: [CONNECTION_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'connection:channel_connected': last(
      ['account_id', 'platform'],
      sql`
      insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
      select connection_id, account_id, platform, platform_channel_id, connected_at from e
      on conflict (account_id, platform) do update set
        id = excluded.id, platform_channel_id = excluded.platform_channel_id,
        connected_at = excluded.connected_at`,
    ),
    'connection:channel_disconnected': all(sql`
      delete from channel_connections c using e where c.id = e.connection_id`),
    'connection:shop_connected': last(
      ['shop_domain'],
      sql`
      insert into shop_connections (id, account_id, shop_domain, connected_at)
      select connection_id, account_id, shop_domain, connected_at from e
      on conflict (shop_domain) do update set
        id = excluded.id, account_id = excluded.account_id, connected_at = excluded.connected_at`,
    ),
    'connection:shop_disconnected': all(sql`delete from shop_connections c using e where c.id = e.connection_id`),
    'account:dissolved': all(
      sql`delete from channel_connections c using e where c.account_id = e.account_id`,
      sql`delete from shop_connections c using e where c.account_id = e.account_id`,
    ),
  },
});
