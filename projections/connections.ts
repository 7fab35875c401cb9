import { CONNECTIONS_WAKEUP } from '../access/living-connections';
import { ACCOUNT_EVENTS } from '../domain/accounts';
import { CONNECTION_EVENTS } from '../domain/connections';
import { sql } from '../kernel/sql';
import { all, handled, last, pick } from './runtime/handlers';

/**
 * Channels, bots and shops that accounts are connected to; ingest finds the account of a delivery here, and workers
 * what to hold a connection to. A dissolved account is connected to nothing, before it was taken off everything
 * (reactors/accounts.ts).
 */
export const connections = handled({
  name: 'connections',
  version: 3,
  tables: ['channel_connections', 'bot_connections', 'shop_connections'],
  wakes: CONNECTIONS_WAKEUP,
  events: [CONNECTION_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'connection:channel_connected': last(
      ['account_id', 'platform'],
      sql`
      insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at, since)
      select connection_id, account_id, platform, platform_channel_id, connected_at, connected_at from e
      on conflict (account_id, platform) do update set
        id = excluded.id, platform_channel_id = excluded.platform_channel_id, reconnect_required = false,
        bot_enabled = true, connected_at = excluded.connected_at, since = excluded.since`,
    ),
    'connection:channel_disconnected': all(sql`
      delete from channel_connections c using e where c.id = e.connection_id`),
    'connection:bot_connected': last(
      ['account_id', 'platform'],
      sql`
      insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
      select connection_id, account_id, platform, platform_user_id, connected_at, connected_at from e
      on conflict (account_id, platform) do update set
        id = excluded.id, platform_user_id = excluded.platform_user_id, reconnect_required = false,
        connected_at = excluded.connected_at, since = excluded.since`,
    ),
    'connection:bot_disconnected': all(sql`delete from bot_connections c using e where c.id = e.connection_id`),
    'connection:reconnected': last(
      ['connection_id'],
      sql`update channel_connections c set reconnect_required = false, since = e.reconnected_at
          from e where c.id = e.connection_id`,
      sql`update bot_connections c set reconnect_required = false, since = e.reconnected_at
          from e where c.id = e.connection_id`,
    ),
    'connection:reconnect_required': last(
      ['connection_id'],
      sql`update channel_connections c set reconnect_required = true from e where c.id = e.connection_id`,
      sql`update bot_connections c set reconnect_required = true from e where c.id = e.connection_id`,
    ),
    'connection:reconnect_cleared': last(
      ['connection_id'],
      sql`update channel_connections c set reconnect_required = false, since = e.cleared_at
          from e where c.id = e.connection_id`,
      sql`update bot_connections c set reconnect_required = false, since = e.cleared_at
          from e where c.id = e.connection_id`,
    ),
    'connection:bot_toggled': last(
      ['connection_id'],
      sql`update channel_connections c set bot_enabled = e.enabled from e where c.id = e.connection_id`,
    ),
    'connection:bot_rejoined': last(
      ['connection_id'],
      sql`update channel_connections c set since = e.rejoined_at from e where c.id = e.connection_id`,
    ),
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
      sql`delete from bot_connections c using e where c.account_id = e.account_id`,
      sql`delete from shop_connections c using e where c.account_id = e.account_id`,
    ),
  },
});
