import type { AppPlatform } from '../domain/system-connections';
import type { Queryable } from '../engines/postgres/port';
import type { SecretBox } from '../engines/secrets/port';
import type { Settings } from '../kernel/settings';
import type { KeptGrant } from './connection-grants';
import type { OAuthApp } from '../vendors/oauth/port';

/** Whose app secrets those of the installation are; those of accounts are under the account's id. */
export const INSTALLATION = 'system';
/** The key of an app's row: whose it is, and where. */
const idOf = (owner: string, platform: string): string => `${owner}/${platform}`;
/** What the secret of the app of this key is sealed for. */
export const appSecretContext = (id: string): string => `app-secret ${id}`;

interface Apps {
  db: Queryable;
  secrets: SecretBox;
  settings: Settings;
}

/** Keeps an app's secret, over the one before. It is never read out again but to speak with the vendor. */
export async function writeApp(
  { db, secrets }: Omit<Apps, 'settings'>,
  { owner, platform, app }: { owner: string; platform: string; app: OAuthApp },
): Promise<void> {
  const id = idOf(owner, platform);
  await db.query(
    `insert into app_secrets (id, client_id, sealed) values ($1, $2, $3)
     on conflict (id) do update
       set client_id = excluded.client_id, sealed = excluded.sealed, set_at = clock_timestamp()`,
    [id, app.client_id, secrets.seal(app.client_secret, appSecretContext(id))],
    'app-secret-write',
  );
}

export async function dropApp(db: Queryable, owner: string, platform: string): Promise<void> {
  await db.query('delete from app_secrets where id = $1', [idOf(owner, platform)], 'app-secret-drop');
}

async function readApp({ db, secrets }: Apps, owner: string, platform: string): Promise<OAuthApp | null> {
  const id = idOf(owner, platform);
  const [row] = await db.query('select client_id, sealed from app_secrets where id = $1', [id], 'app-secret');
  if (row === undefined) return null;
  return {
    client_id: row['client_id'],
    client_secret: secrets.open(row['sealed'], appSecretContext(id)).toString(),
  };
}

/** The app of an account at a vendor; null where it has registered none. */
export const accountApp = (apps: Apps, account_id: string, platform: string): Promise<OAuthApp | null> =>
  readApp(apps, account_id, platform);

/** The installation's app: what an operator has set, else what the settings say; null where there is none. */
export const systemApp = async (apps: Apps, platform: AppPlatform): Promise<OAuthApp | null> =>
  (await readApp(apps, INSTALLATION, platform)) ?? configuredApp(apps.settings, platform);

/** The app that the settings name; of several ids the first one. */
export function configuredApp(settings: Settings, platform: AppPlatform): OAuthApp | null {
  const { client_id, client_secret } = settings[platform === 'youtube' ? 'google' : platform];
  const [first] = client_id;
  return first === undefined || client_secret === '' ? null : { client_id: first, client_secret };
}

/** The app that a grant was made with, as it is now; null where it is gone or another one. */
export async function appOfGrant(
  apps: Apps,
  { app, account_id, platform, client_id }: Pick<KeptGrant, 'app' | 'account_id' | 'platform' | 'client_id'>,
): Promise<OAuthApp | null> {
  const own = app === 'account' && account_id !== null;
  const found = own ? await accountApp(apps, account_id, platform) : await systemApp(apps, platform as AppPlatform);
  return found?.client_id === client_id ? found : null;
}
