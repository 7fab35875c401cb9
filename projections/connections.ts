import { CONNECTION_EVENTS } from '../domain/connections';
import { lastRowsOf, rowsOf, runsByType } from './event-runs';
import { projection, type EventProjection } from './projection';

/** Channels and shops that accounts are connected to; ingest finds the account of a delivery here. */
export const connections = projection<EventProjection>({
  name: 'connections',
  version: 1,
  from: { kind: 'domain_events', types: CONNECTION_EVENTS },
  tables: ['channel_connections', 'shop_connections'],
  async apply(batch, tx) {
    for (const run of runsByType(batch)) {
      switch (run.type) {
        case 'connection:channel_connected':
          await tx.query(
            `insert into channel_connections (id, account_id, platform, platform_channel_id, channel_name, connected_at)
             select connection_id, account_id, platform, platform_channel_id, channel_name, connected_at
             from jsonb_to_recordset($1::jsonb) as e (connection_id uuid, account_id uuid, platform text, platform_channel_id text,
                                                      channel_name text, connected_at timestamptz)
             on conflict (account_id, platform) do update set
               id = excluded.id, platform_channel_id = excluded.platform_channel_id, channel_name = excluded.channel_name,
               connected_at = excluded.connected_at`,
            [lastRowsOf(run, 'account_id', 'platform')],
          );
          break;
        case 'connection:channel_disconnected':
          await tx.query(
            `delete from channel_connections c using jsonb_to_recordset($1::jsonb) as e (connection_id uuid) where c.id = e.connection_id`,
            [rowsOf(run)],
          );
          break;
        case 'connection:shop_connected':
          await tx.query(
            `insert into shop_connections (id, account_id, shop_domain, connected_at)
             select connection_id, account_id, shop_domain, connected_at
             from jsonb_to_recordset($1::jsonb) as e (connection_id uuid, account_id uuid, shop_domain text, connected_at timestamptz)
             on conflict (shop_domain) do update set
               id = excluded.id, account_id = excluded.account_id, connected_at = excluded.connected_at`,
            [lastRowsOf(run, 'shop_domain')],
          );
          break;
        case 'connection:shop_disconnected':
          await tx.query(
            `delete from shop_connections c using jsonb_to_recordset($1::jsonb) as e (connection_id uuid) where c.id = e.connection_id`,
            [rowsOf(run)],
          );
          break;
      }
    }
    return [];
  },
});
