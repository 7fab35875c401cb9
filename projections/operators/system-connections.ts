import { SYSTEM_CONNECTION_EVENTS } from '../../domain/operators/system-connections';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer } from '../runtime/drive/handlers';

/** The installation's own app and bot at each vendor, and the modes that choose the app of new connections. */
export const systemConnections = eventProjection({
  name: 'system-connections',
  version: 1,
  tables: ['system_connections'],
  events: [SYSTEM_CONNECTION_EVENTS],
  on: {
    'system_connection:app_set': lastPer(
      ['platform'],
      sql`insert into system_connections (platform, client_id) select platform, client_id from e
          on conflict (platform) do update set client_id = excluded.client_id`,
    ),
    'system_connection:app_removed': lastPer(
      ['platform'],
      sql`update system_connections s set client_id = null from e where s.platform = e.platform`,
    ),
    'system_connection:modes_set': lastPer(
      ['platform'],
      sql`insert into system_connections (platform, channel_mode, bot_mode) select platform, channel_mode, bot_mode from e
          on conflict (platform) do update set channel_mode = excluded.channel_mode, bot_mode = excluded.bot_mode`,
    ),
    'system_connection:bot_connected': lastPer(
      ['platform'],
      sql`insert into system_connections (platform, bot_connection_id, bot_user_id, bot_connected_at)
          select platform, connection_id, platform_user_id, connected_at from e
          on conflict (platform) do update set
            bot_connection_id = excluded.bot_connection_id, bot_user_id = excluded.bot_user_id,
            bot_connected_at = excluded.bot_connected_at, reconnect_required = false`,
    ),
    'system_connection:bot_disconnected': lastPer(
      ['platform'],
      sql`update system_connections s
          set bot_connection_id = null, bot_user_id = null, bot_connected_at = null, reconnect_required = false
          from e where s.platform = e.platform`,
    ),
    // By the connection, whatever the platform: each statement sets one value.
    'system_connection:bot_reconnected': all(
      sql`update system_connections s set reconnect_required = false from e where s.bot_connection_id = e.connection_id`,
    ),
    'system_connection:bot_reconnect_required': all(
      sql`update system_connections s set reconnect_required = true from e where s.bot_connection_id = e.connection_id`,
    ),
  },
});
