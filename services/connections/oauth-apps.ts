import type { AppPlatform } from '../../domain/operators/system-connections';
import type { Queryable } from '../../engines/postgres/port';
import type { SecretBox } from '../../privacy/secrets/port';
import type { Settings } from '../../kernel/settings/settings';
import type { KeptGrant } from './connection-grants';
import type { OAuthApp } from '../../vendors/oauth/port';

/** Owner of the installation's app secrets; an account's secrets have its id as owner. */
export const INSTALLATION = 'system';
/** Key of an app's row: owner and platform. */
const idOf = (owner: string, platform: string): string => `${owner}/${platform}`;
/** Purpose under which the secret of this app is sealed. */
export const appSecretContext = (id: string): string => `app-secret ${id}`;

interface Apps {
  db: Queryable;
  secrets: SecretBox;
  settings: Settings;
}

/** Stores an app's secret; replaces the previous one. Only calls to the vendor read it. */
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

/** Version of the stored secret; null without one. */
export async function keptApp(db: Queryable, owner: string, platform: string): Promise<string | null> {
  const query = 'select set_at::text as version from app_secrets where id = $1';
  const [row] = await db.query<{ version: string }>(query, [idOf(owner, platform)], 'app-secret-kept');
  return row?.version ?? null;
}

/** Deletes this version of the secret; a later one stays. */
export async function dropApp(db: Queryable, owner: string, platform: string, version: string | null): Promise<void> {
  const statement = 'delete from app_secrets where id = $1 and set_at::text = $2';
  await db.query(statement, [idOf(owner, platform), version], 'app-secret-drop');
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

/** The app of an account at a vendor; null without one. */
export const accountApp = (apps: Apps, account_id: string, platform: string): Promise<OAuthApp | null> =>
  readApp(apps, account_id, platform);

/** The installation's app: the operator's, else the one of the settings; null without one. */
export const systemApp = async (apps: Apps, platform: AppPlatform): Promise<OAuthApp | null> =>
  (await readApp(apps, INSTALLATION, platform)) ?? configuredApp(apps.settings, platform);

/** The app of the settings; of several client ids the first. */
export function configuredApp(settings: Settings, platform: AppPlatform): OAuthApp | null {
  const { client_id, client_secret } = settings[platform === 'youtube' ? 'google' : platform];
  const [first] = client_id;
  return first === undefined || client_secret === '' ? null : { client_id: first, client_secret };
}

/** The current app of a grant; null when it is gone or replaced by another. */
export async function appOfGrant(
  apps: Apps,
  { app, account_id, platform, client_id }: Pick<KeptGrant, 'app' | 'account_id' | 'platform' | 'client_id'>,
): Promise<OAuthApp | null> {
  const own = app === 'account' && account_id !== null;
  const found = own ? await accountApp(apps, account_id, platform) : await systemApp(apps, platform as AppPlatform);
  return found?.client_id === client_id ? found : null;
}
