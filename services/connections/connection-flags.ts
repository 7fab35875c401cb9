import { connections, connectionsStream } from '../../domain/connections/connections';
import { systemConnection, systemConnectionStream, type AppPlatform } from '../../domain/operators/system-connections';
import type { EventStore } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import type { GrantRow } from './connection-grants';
import { actAsService } from '../../app/service-calls';

/** Service name recorded for setting and clearing flags. */
const SERVICE = 'connections';

type Flagged = Pick<GrantRow, 'connection_id' | 'account_id' | 'platform'>;

/**
 * Flags a connection that must be connected again, or clears its flag; ignores a connection that was disconnected
 * meanwhile.
 */
export async function sayReconnect(
  events: EventStore,
  ending: 'require_reconnect' | 'clear_reconnect',
  { connection_id, account_id, platform }: Flagged,
): Promise<void> {
  const act = actAsService(SERVICE, events);
  try {
    if (account_id !== null) {
      const of = { account_id, connection_id };
      await act(connections, connectionsStream(account_id), { type: `connection:${ending}`, ...of });
    } else {
      const of = { platform: platform as AppPlatform, connection_id };
      await act(systemConnection, systemConnectionStream(of.platform), { type: `system_connection:${ending}`, ...of });
    }
  } catch (error) {
    if (!(error instanceof DomainError && error.reason === 'CONNECTION_NOT_FOUND')) throw error;
  }
}

/** Skips younger tokens: the process that stored them is about to clear the flag. */
const AT_LEAST_SO_OLD = "interval '1 minute'";

/**
 * Clears the flags of connections with valid tokens, which remain when a process dies between storing the tokens and
 * clearing the flag. Nothing else uses a flagged connection, so nothing else would notice. Returns the number cleared.
 */
export async function clearStaleFlags({ db, events }: { db: Queryable; events: EventStore }): Promise<number> {
  const rows = await db.query<Flagged & Record<string, unknown>>(
    `select c.* from (
       select id as connection_id, account_id, platform from channel_connections where reconnect_required
       union all
       select id, account_id, platform from bot_connections where reconnect_required
       union all
       select bot_connection_id, null, platform from system_connections where reconnect_required) c
     join connection_grants g using (connection_id)
     where not g.dead and g.stored_at < clock_timestamp() - ${AT_LEAST_SO_OLD}`,
    [],
    'connections-flagged-for-nothing',
  );
  for (const row of rows) await sayReconnect(events, 'clear_reconnect', row);
  return rows.length;
}
