import type { Settings } from '../../../kernel/settings/settings';
import { connectOnce } from '../migrate';
import { asQueryable } from '../pool';
import type { Queryable } from '../port';
import { namingDatabase } from '../url';
import { SettingsError } from '../../../kernel/settings/error';

type Environment = Settings['env'];

/**
 * Environment of the database, as recorded by its first start. Older databases have no record: development when they
 * have demo data, else production. Null for a database on which nothing was ever started.
 */
export async function environmentOf(db: Queryable): Promise<Environment | null> {
  const [tables] = await db.query(`select to_regclass('public.installation') is not null as made`);
  if (!tables!.made) return null;
  const rows = await db.query<{ name: string; value: string }>(
    `select name, value from installation where name in ('environment', 'demo')`,
  );
  const recorded = rows.find(({ name }) => name === 'environment');
  if (recorded) return recorded.value === 'development' ? 'development' : 'production';
  if (rows.length > 0) return 'development';
  // Another process may be applying its first steps, or was killed between two of them: nothing was started there.
  const [later] = await db.query(
    `select to_regclass('public.users') is not null and to_regclass('public.domain_events') is not null as made`,
  );
  if (!later!.made) return null;
  const [used] = await db.query('select exists (select from users) or exists (select from domain_events) as yes');
  return used!.yes ? 'production' : null;
}

/**
 * Checks the environment before the start changes anything. @throws SettingsError in one line when the database belongs
 * to the other environment; with `adopt` the start takes it over instead, see {@link recordEnvironment}.
 */
export async function refuseOtherEnvironment(settings: Settings, url: string, adopt: boolean): Promise<void> {
  const { env } = settings;
  const client = await namingDatabase(settings, () => connectOnce(url, 'lumio start'));
  try {
    const found = await environmentOf(asQueryable(client));
    if (found !== null && found !== env && !adopt) throw new SettingsError(REFUSALS[env]);
  } finally {
    await client.end();
  }
}

const REFUSALS: Record<Environment, string> = {
  development:
    'LUMIO_ENV: is development, and the database is one of production, where development would leave demo users and a demo system key; set production, or start with --adopt once',
  production:
    'LUMIO_ENV: is production, and the database is one of development, with demo users and keys; use another database, or start with --adopt once, which removes them',
};

/**
 * Records the environment of the database; of concurrent first starts the first wins. @throws SettingsError for starts
 * of the other environment
 */
export async function claimEnvironment(db: Queryable, env: Environment): Promise<void> {
  const claimed = (await environmentOf(db)) ?? env;
  await db.query(`insert into installation (name, value) values ('environment', $1) on conflict do nothing`, [claimed]);
  if ((await environmentOf(db)) !== env) throw new SettingsError(REFUSALS[env]);
}

/** Last step of `--adopt`: assigns the database to this environment. */
export async function recordEnvironment(db: Queryable, env: Environment): Promise<void> {
  await db.query(
    `insert into installation (name, value) values ('environment', $1)
     on conflict (name) do update set value = excluded.value`,
    [env],
  );
}
