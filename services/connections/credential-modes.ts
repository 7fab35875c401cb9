import { z } from 'zod';
import {
  APP_PLATFORMS,
  CREDENTIAL_MODES,
  type AppPlatform,
  type CredentialMode,
} from '../../domain/operators/system-connections';
import { badRequest } from '../../kernel/operations/errors';
import type { OAuthApp } from '../../vendors/oauth/port';
import { accountApp, INSTALLATION, configuredApp, systemApp } from './oauth-apps';
import type { Services } from '../../app/services';

const MODE_KINDS = ['channel', 'bot'] as const;
type ModeKind = (typeof MODE_KINDS)[number];

export const CredentialModeValue = z.enum(CREDENTIAL_MODES).meta({
  id: 'PlatformCredentialModeValue',
  description: "Whose app is meant: the installation's or the account's own",
});

/** Owner of the app that a platform is connected with. Source: spec doc2 §2.10. */
export const PlatformCredentialMode = z
  .object({
    platform: z.string(),
    kind: z.enum(MODE_KINDS).meta({ id: 'PlatformCredentialKind' }),
    mode: CredentialModeValue,
    system_configured: z.boolean().describe('Without it, the account needs an app of its own in either mode'),
  })
  .meta({ id: 'PlatformCredentialMode' });
export type PlatformCredentialMode = z.output<typeof PlatformCredentialMode>;

/** Input of an app's credentials. */
export const appInput = {
  client_id: z.string().trim().min(1, 'client_id must not be empty').max(200),
  client_secret: z.string().trim().min(1, 'client_secret must not be empty').max(500).describe('Never shown again'),
};

/** An account's own app at a platform; its secret is never shown. Source: spec extra-facts §13. */
export const AccountApp = z
  .object({ platform: z.string(), client_id: z.string(), set_at: z.string().meta({ format: 'date-time' }) })
  .meta({ id: 'AccountApp' });

/** The apps that an account has registered. */
export const accountAppsOf = (db: Services['db'], account_id: string): Promise<z.output<typeof AccountApp>[]> =>
  db.query<z.output<typeof AccountApp>>(
    `select split_part(id, '/', 2) as platform, client_id, set_at from app_secrets
     where id = any($1::text[]) order by id`,
    [APP_PLATFORMS.map((platform) => `${account_id}/${platform}`)],
    'account-apps',
  );

type Needs = Pick<Services, 'db' | 'secrets' | 'settings' | 'oauth'>;

/** Error when neither the installation nor the account has an app at the vendor. */
export const NO_APP = { NO_APP: badRequest('Connecting {platform} needs app credentials of the account first') };

/** The operator's mode for each platform and kind; the default is the installation's app. */
async function intended({ db }: Needs): Promise<(platform: string, kind: ModeKind) => CredentialMode> {
  const rows = await db.query<{ platform: string; channel_mode: CredentialMode; bot_mode: CredentialMode }>(
    'select platform, channel_mode, bot_mode from system_connections',
    [],
    'credential-modes',
  );
  const modes = new Map(rows.map((row) => [row.platform, row]));
  return (platform, kind) => modes.get(platform)?.[`${kind}_mode`] ?? 'system';
}

/**
 * Modes for each platform and kind that is connected by a login. An account's own app wins over the operator's mode.
 */
export async function credentialModesOf(services: Needs, account_id: string): Promise<PlatformCredentialMode[]> {
  const meant = await intended(services);
  const owners = await services.db.query<{ id: string }>(
    'select id from app_secrets where id = any($1::text[])',
    [APP_PLATFORMS.flatMap((platform) => [`${account_id}/${platform}`, `${INSTALLATION}/${platform}`])],
    'app-owners',
  );
  const has = new Set(owners.map(({ id }) => id));
  return APP_PLATFORMS.flatMap((platform) => {
    const kinds = services.oauth.get(platform)?.kinds ?? [];
    const own = has.has(`${account_id}/${platform}`);
    const system_configured =
      has.has(`${INSTALLATION}/${platform}`) || configuredApp(services.settings, platform) !== null;
    return MODE_KINDS.filter((kind) => kinds.includes(kind)).map((kind) => ({
      platform,
      kind,
      mode: own ? ('account' as const) : meant(platform, kind),
      system_configured,
    }));
  });
}

/** The app that a connection is made with; null without one. */
export async function appFor(
  services: Needs,
  { platform, kind, account_id }: { platform: AppPlatform; kind: ModeKind; account_id: string | null },
): Promise<(OAuthApp & { app: 'system' | 'account' }) | null> {
  const own = account_id === null ? null : await accountApp(services, account_id, platform);
  if (own !== null) return { ...own, app: 'account' };
  // In mode `account` the installation's app is not available to accounts.
  if (account_id !== null && (await intended(services))(platform, kind) === 'account') return null;
  const system = await systemApp(services, platform);
  return system === null ? null : { ...system, app: 'system' };
}
