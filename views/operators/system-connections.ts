import { z } from 'zod';
import { APP_PLATFORMS, type AppPlatform } from '../../domain/operators/system-connections';
import { CredentialModeValue } from '../../services/connections/credential-modes';
import { grantNames } from '../../services/connections/connection-grants';
import { configuredApp, INSTALLATION } from '../../services/connections/oauth-apps';
import type { Services } from '../../app/services';

const dateTime = z.string().meta({ format: 'date-time' });
/** The bot for accounts without a bot of their own. */
const SystemBot = z
  .object({
    connection_id: z.uuid(),
    platform_user_id: z.string(),
    username: z.string().nullable(),
    display_name: z.string().nullable(),
    reconnect_required: z.boolean(),
    connected_at: dateTime,
  })
  .meta({ id: 'SystemBot' });

/** App and bot of the installation at a platform; the app's secret is never shown. Source: extra-facts §27. */
export const SystemConnection = z
  .object({
    platform: z.string(),
    client_id: z.string().nullable(),
    source: z
      .enum(['operator', 'settings'])
      .meta({ id: 'SystemConnectionSource' })
      .nullable()
      .describe('Who said which app it is; null where there is none'),
    channel_mode: CredentialModeValue,
    bot_mode: CredentialModeValue,
    bot: SystemBot.nullable(),
  })
  .meta({ id: 'SystemConnection' });
export type SystemConnection = z.output<typeof SystemConnection>;

/** All platforms in their order, or the named one. */
export async function systemConnectionsOf(
  services: Pick<Services, 'db' | 'texts' | 'settings'>,
  platform: AppPlatform | null = null,
): Promise<SystemConnection[]> {
  const rows = await services.db.query<{
    platform: AppPlatform;
    client_id: string | null;
    channel_mode: SystemConnection['channel_mode'];
    bot_mode: SystemConnection['bot_mode'];
    connection_id: string | null;
    platform_user_id: string;
    reconnect_required: boolean;
    connected_at: string;
  }>(
    `select p.platform, a.client_id, coalesce(s.channel_mode, 'system') as channel_mode,
       coalesce(s.bot_mode, 'system') as bot_mode, s.bot_connection_id as connection_id,
       s.bot_user_id as platform_user_id, s.reconnect_required, s.bot_connected_at as connected_at
     from unnest($1::text[]) with ordinality as p (platform, place)
     left join system_connections s on s.platform = p.platform
     left join app_secrets a on a.id = '${INSTALLATION}/' || p.platform
     order by p.place`,
    [platform === null ? APP_PLATFORMS : [platform]],
    'system-connections',
  );
  const names = await grantNames(
    services,
    rows.flatMap((row) => row.connection_id ?? []),
  );
  return rows.map((row) => {
    const { platform, connection_id, platform_user_id, reconnect_required, connected_at, ...modes } = row;
    const configured = configuredApp(services.settings, platform);
    const known = connection_id === null ? undefined : names.get(connection_id);
    const { username = null, display_name = null } = known ?? {};
    return {
      platform,
      client_id: row.client_id ?? configured?.client_id ?? null,
      source: row.client_id !== null ? 'operator' : configured !== null ? 'settings' : null,
      channel_mode: modes.channel_mode,
      bot_mode: modes.bot_mode,
      bot:
        connection_id === null
          ? null
          : { connection_id, platform_user_id, username, display_name, reconnect_required, connected_at },
    };
  });
}
