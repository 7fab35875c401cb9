import { z } from 'zod';
import { CHANNEL_PLATFORMS } from '../domain/vendors';
import type { Queryable } from '../engines/postgres/port';
import type { Caller } from './caller';
import { holds } from './grants';

const dateTime = z.string().meta({ format: 'date-time' });

/** Whether a platform can be used for an account. Source: spec doc2 §2.10. */
export const ConnectionStatus = z
  .object({
    platform: z.string(),
    is_connected: z.boolean().describe('A connection is there, and its tokens are good'),
    reconnect_required: z.boolean().describe('A connection is there, and its tokens are refused'),
    expires_at: dateTime.nullable().describe('Of the access token; it is renewed by itself'),
    login_connected: z.boolean().describe("The caller's own login there can be used for the account"),
    login_reconnect_required: z.boolean().describe("The caller's own login there is refused"),
  })
  .meta({ id: 'ConnectionStatus' });
export type ConnectionStatus = z.output<typeof ConnectionStatus>;

/**
 * One for each platform that channels are connected of. The login that counts is the one assigned on the account, else
 * any of the caller's; nobody sends to Spotify, so that it has none.
 */
export function connectionStatusesOf(
  db: Queryable,
  { account_id, user_id }: Pick<Caller, 'account_id' | 'user_id'>,
): Promise<ConnectionStatus[]> {
  return db.query<ConnectionStatus & Record<string, unknown>>(
    `select p.platform, c.id is not null and not c.reconnect_required as is_connected,
       coalesce(c.reconnect_required, false) as reconnect_required, g.expires_at,
       coalesce(not l.reconnect_required, false) as login_connected,
       coalesce(l.reconnect_required, false) as login_reconnect_required
     from unnest($3::text[]) with ordinality as p (platform, place)
     left join channel_connections c on c.account_id = $1 and c.platform = p.platform
     left join connection_grants g on g.connection_id = c.id
     left join lateral (
       select l.reconnect_required from login_connections l
       left join account_login_assignments a
         on a.account_id = $1 and a.user_id = $2 and a.login_connection_id = l.id
       where l.user_id = $2 and l.provider = case p.platform when 'youtube' then 'google' else p.platform end
       order by (a.id is null), l.reconnect_required, l.connected_at, l.id limit 1) l on true
     order by p.place`,
    [account_id, user_id, CHANNEL_PLATFORMS],
    'connection-statuses',
  );
}

/** Something that must be connected again. Source: spec doc2 §4.3. */
export const FlaggedConnection = z
  .object({
    id: z.uuid(),
    kind: z.enum(['login', 'channel', 'bot']).meta({ id: 'FlaggedConnectionKind' }),
    platform: z.string(),
    account_id: z.uuid().nullable().describe('Null for a login, which is its person’s own'),
  })
  .meta({ id: 'FlaggedConnection' });
export type FlaggedConnection = z.output<typeof FlaggedConnection>;

/** The caller's logins, and channels and bots of the active account as far as they may see them. */
export function flaggedOf(db: Queryable, caller: Caller & { user_id: string }): Promise<FlaggedConnection[]> {
  const may = (permission: string) => holds(caller, caller.permissions, permission);
  return db.query<FlaggedConnection & Record<string, unknown>>(
    `select id, 'login' as kind, case provider when 'google' then 'youtube' else provider end as platform,
       null::uuid as account_id
     from login_connections where user_id = $1 and reconnect_required
     union all
     select id, 'channel', platform, account_id from channel_connections
     where account_id = $2 and reconnect_required and $3
     union all
     select id, 'bot', platform, account_id from bot_connections where account_id = $2 and reconnect_required and $4
     order by kind, platform, id`,
    [caller.user_id, caller.account_id, may('connections:read'), may('bot-connections:read')],
    'flagged-connections',
  );
}
