import { z } from 'zod';
import { labelOf } from '../../domain/operators/feature-flags';
import {
  CONNECTION_KINDS,
  type ConnectionKind,
  loginOfProvider,
  PROVIDERS,
  switchesOf,
} from '../../domain/connections/providers';
import type { Queryable } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';
import { notFound } from '../../kernel/operations/errors';
import type { Settings } from '../../kernel/settings/settings';

const label = z.string();

export const ProviderSlug = z.string().max(50);
export const PROVIDER_NOT_FOUND = { PROVIDER_NOT_FOUND: notFound('Provider not found') };

/** A streaming or login platform under its master switch. Source: spec extra-facts §26. */
export const AdminPlatform = z
  .object({ platform: z.string(), label, enabled: z.boolean().describe('The master switch') })
  .meta({ id: 'AdminPlatform' });

export type AdminPlatform = z.output<typeof AdminPlatform>;

export const platformOf = ({ platform, label, enabled }: AdminPlatform): AdminPlatform => ({
  platform,
  label,
  enabled,
});

const kind = z.boolean().nullable().describe('Null: it is not connected for that');

/** A provider with its four switches. Source: spec extra-facts §27. */
export const AdminProvider = z
  .object({
    ...AdminPlatform.shape,
    login: kind,
    channel: kind,
    bot: kind,
    credentials_set: z.boolean().describe('Whether this installation has an app there'),
    login_connections: z.int(),
    channel_connections: z.int(),
    bot_connections: z.int(),
  })
  .meta({ id: 'AdminProvider' });
export type AdminProvider = z.output<typeof AdminProvider>;

/** Keys of the platform flags that are off. */
async function switchedOffKeys(db: Queryable): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ key: string }>(
    `select key from feature_flags where not enabled and key like 'platform:%'`,
    [],
    'provider-switches',
  );
  return new Set(rows.map(({ key }) => key));
}

/** The providers that may be connected now, for one kind or for any. Source: spec doc2 §4.3. */
export async function enabledFor(db: Queryable, kinds: readonly ConnectionKind[]): Promise<string[]> {
  const off = await switchedOffKeys(db);
  const open = (slug: string, one: ConnectionKind) => !switchesOf(slug, one).some((flag) => off.has(flag));
  return PROVIDERS.filter(({ slug, kinds: has }) => kinds.some((one) => has.includes(one) && open(slug, one))).map(
    ({ slug }) => slug,
  );
}

/** All providers in their order, or the named one. */
export async function adminProviders(
  { db, settings }: { db: Queryable; settings: Settings },
  platform?: string,
): Promise<AdminProvider[]> {
  const off = await switchedOffKeys(db);
  const counted = await db.query<{ of: string; kind: string; n: number }>(
    `select platform as of, 'channel' as kind, count(*) as n from channel_connections group by platform
     union all select platform, 'bot', count(*) from bot_connections group by platform
     union all select split_part(id, '/', 2), 'app', 1 from app_secrets where id like 'system/%'
     union all select provider, 'login', count(*) from login_connections group by provider`,
    [],
    'provider-counts',
  );
  const count = (of: string, kind: string) => counted.find((row) => row.of === of && row.kind === kind)?.n ?? 0;
  const { twitch, google, kick, trovo, discord, spotify } = settings;
  const apps: Partial<Record<string, { client_id: readonly string[] }>> = {
    twitch,
    google,
    kick,
    trovo,
    discord,
    spotify,
  };
  return PROVIDERS.filter(({ slug }) => platform === undefined || slug === platform).map(({ slug, kinds }) => {
    const on = (one: ConnectionKind) => (kinds.includes(one) ? !off.has(`platform:${slug}:${one}`) : null);
    const login = loginOfProvider(slug);
    const [login_on, channel_on, bot_on] = CONNECTION_KINDS.map(on) as [boolean | null, boolean | null, boolean | null];
    return {
      platform: slug,
      label: labelOf(`platform:${slug}`),
      enabled: !off.has(`platform:${slug}`),
      login: login_on,
      channel: channel_on,
      bot: bot_on,
      credentials_set: (apps[login]?.client_id.length ?? 0) > 0 || count(slug, 'app') > 0,
      login_connections: count(login, 'login'),
      channel_connections: count(slug, 'channel'),
      bot_connections: count(slug, 'bot'),
    };
  });
}

/** @throws DomainError of {@link PROVIDER_NOT_FOUND} */
export async function adminProviderOf(
  services: Parameters<typeof adminProviders>[0],
  platform: string,
): Promise<AdminProvider> {
  const [found] = await adminProviders(services, platform);
  if (found === undefined) throw new DomainError('PROVIDER_NOT_FOUND', { platform });
  return found;
}
