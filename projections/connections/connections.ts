import { CONNECTIONS_WAKEUP } from '../../services/connections/active-connections';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { CONNECTION_EVENTS } from '../../domain/connections/connections';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/**
 * Channels, bots and shops connected to accounts; ingest finds the account of a delivery here, and workers find the
 * connections to hold. A dissolved account has no connections, even before each is disconnected
 * (reactors/accounts/accounts.ts).
 */
export const connections = eventProjection({
  name: 'connections',
  version: 3,
  tables: ['channel_connections', 'bot_connections', 'shop_connections'],
  wakes: CONNECTIONS_WAKEUP,
  events: [CONNECTION_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'connection:channel_connected': lastPer(
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
    'connection:bot_connected': lastPer(
      ['account_id', 'platform'],
      sql`
      insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
      select connection_id, account_id, platform, platform_user_id, connected_at, connected_at from e
      on conflict (account_id, platform) do update set
        id = excluded.id, platform_user_id = excluded.platform_user_id, reconnect_required = false,
        connected_at = excluded.connected_at, since = excluded.since`,
    ),
    'connection:bot_disconnected': all(sql`delete from bot_connections c using e where c.id = e.connection_id`),
    'connection:reconnected': lastPer(
      ['connection_id'],
      sql`update channel_connections c set reconnect_required = false, since = e.reconnected_at
          from e where c.id = e.connection_id`,
      sql`update bot_connections c set reconnect_required = false, since = e.reconnected_at
          from e where c.id = e.connection_id`,
    ),
    'connection:reconnect_required': lastPer(
      ['connection_id'],
      sql`update channel_connections c set reconnect_required = true from e where c.id = e.connection_id`,
      sql`update bot_connections c set reconnect_required = true from e where c.id = e.connection_id`,
    ),
    'connection:reconnect_cleared': lastPer(
      ['connection_id'],
      sql`update channel_connections c set reconnect_required = false, since = e.cleared_at
          from e where c.id = e.connection_id`,
      sql`update bot_connections c set reconnect_required = false, since = e.cleared_at
          from e where c.id = e.connection_id`,
    ),
    'connection:bot_toggled': lastPer(
      ['connection_id'],
      sql`update channel_connections c set bot_enabled = e.enabled from e where c.id = e.connection_id`,
    ),
    'connection:bot_rejoined': lastPer(
      ['connection_id'],
      sql`update channel_connections c set since = e.rejoined_at from e where c.id = e.connection_id`,
    ),
    'connection:shop_connected': lastPer(
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
