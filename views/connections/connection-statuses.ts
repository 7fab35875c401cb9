import { z } from 'zod';
import { CHANNEL_PLATFORMS, DELIVERED_ONCE } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import type { Caller } from '../../access/authentication/caller';
import { ACTING_LOGIN } from '../../services/identity/acting-login';
import { hasPermission } from '../../access/authorization/permission-check';

const dateTime = z.string().meta({ format: 'date-time' });

/** Whether a platform can be used for an account. Source: spec doc2 §2.10. */
export const ConnectionStatus = z
  .object({
    platform: z.string(),
    is_connected: z.boolean().describe('A connection is there, and its tokens are good'),
    reconnect_required: z.boolean().describe('A connection is there, and its tokens are refused'),
    expires_at: dateTime.nullable().describe('Of the access token; it is renewed by itself'),
    detail: z
      .string()
      .nullable()
      .describe('What a connection with good tokens lacks: refused event types, a gap of the last day; for people'),
    login_connected: z.boolean().describe("The caller's own login there can be used for the account"),
    login_reconnect_required: z.boolean().describe("The caller's own login there is refused"),
  })
  .meta({ id: 'ConnectionStatus' });
export type ConnectionStatus = z.output<typeof ConnectionStatus>;

/**
 * Status for each platform that channels can be connected to. The caller's login that counts is the one assigned on the
 * account, else any of theirs; Spotify has none.
 */
export function connectionStatusesOf(
  db: Queryable,
  { account_id, user_id }: Pick<Caller, 'account_id' | 'user_id'>,
): Promise<ConnectionStatus[]> {
  return db.query<ConnectionStatus & Record<string, unknown>>(
    `select p.platform, c.id is not null and not c.reconnect_required as is_connected,
       coalesce(c.reconnect_required, false) as reconnect_required, g.expires_at,
       coalesce(g.subscription_problem, link.detail, gap.detail) as detail,
       coalesce(not l.reconnect_required, false) as login_connected,
       coalesce(l.reconnect_required, false) as login_reconnect_required
     from unnest($3::text[]) with ordinality as p (platform, place)
     left join channel_connections c on c.account_id = $1 and c.platform = p.platform
     left join connection_grants g on g.connection_id = c.id
     left join lateral (
       select case when a.status in ('degraded', 'retrying') then a.detail
         when a.missed_to > now() - interval '1 day' then a.missed_detail end as detail
       from adapter_links a where a.connection_id = c.id::text limit 1) link on true
     left join lateral (
       select format('Deliveries from %s to %s UTC may be missing', to_char(d.gap_from at time zone 'UTC', $4),
         to_char(d.gap_to at time zone 'UTC', $4)) as detail
       from webhook_door d
       where c.platform = any ($5) and d.gap_to > greatest(c.connected_at, now() - interval '1 day')) gap on true
     left join lateral (${ACTING_LOGIN}) l on true
     order by p.place`,
    [account_id, user_id, CHANNEL_PLATFORMS, 'YYYY-MM-DD HH24:MI', DELIVERED_ONCE],
    'connection-statuses',
  );
}

/** A connection that must be connected again. Source: spec doc2 §4.3. */
export const FlaggedConnection = z
  .object({
    id: z.uuid(),
    kind: z.enum(['login', 'channel', 'bot']).meta({ id: 'FlaggedConnectionKind' }),
    platform: z.string(),
    account_id: z.uuid().nullable().describe('Null for a login, which is its person’s own'),
  })
  .meta({ id: 'FlaggedConnection' });
export type FlaggedConnection = z.output<typeof FlaggedConnection>;

/** Flagged logins of the caller, and flagged channels and bots of the active account that the caller may see. */
export function flaggedOf(db: Queryable, caller: Caller & { user_id: string }): Promise<FlaggedConnection[]> {
  const may = (permission: string) => hasPermission(caller, caller.permissions, permission);
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
