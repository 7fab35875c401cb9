import { isIP } from 'node:net';
import type { Settings } from '../../kernel/settings/settings';
import { environmentName, SettingsError } from '../../kernel/settings/error';
import { trustedProxies } from '../../api/http/requests/client-ip';
import { isOwnName, isPublic } from '../../lib/net/public-addresses';

/** Checks rules across several settings, or beyond the schema. @throws SettingsError naming the key */
export function contradictions(settings: Settings): void {
  if (settings.env === 'production' && settings.outgoing.allow_loopback) {
    throw new SettingsError('LUMIO_OUTGOING__ALLOW_LOOPBACK (outgoing.allow_loopback): is for tests alone');
  }
  if (settings.env === 'production' && settings.auth.development_logins) {
    throw new SettingsError('LUMIO_AUTH__DEVELOPMENT_LOGINS (auth.development_logins): lets anybody be anybody');
  }
  if (settings.env === 'production' && settings.payments.allow_unsigned_webhooks) {
    throw new SettingsError(
      'LUMIO_PAYMENTS__ALLOW_UNSIGNED_WEBHOOKS (payments.allow_unsigned_webhooks): lets anybody tell of payments',
    );
  }
  for (const [path, url] of vendorAddresses(settings)) {
    if (settings.env === 'production' && !leadsOutside(url)) {
      throw new SettingsError(
        `${environmentName(path)} (${path.join('.')}): must be ${url.startsWith('ws') ? 'wss' : 'https'}, and no private address`,
      );
    }
  }
  try {
    trustedProxies(settings.trusted_proxies);
  } catch (error) {
    throw new SettingsError(`LUMIO_TRUSTED_PROXIES (trusted_proxies): ${(error as Error).message}`);
  }
  const { contact, expires } = settings.security;
  if (contact.length > 0 !== (expires !== undefined)) {
    throw new SettingsError(
      'LUMIO_SECURITY__CONTACT, LUMIO_SECURITY__EXPIRES (security): must be set both, or neither',
    );
  }
  if (settings.database.url !== undefined && settings.secrets.keys === undefined) {
    throw new SettingsError(
      'LUMIO_SECRETS__KEYS (secrets.keys): must be set (id:base64 of 32 bytes) with an external database, since all its nodes share the keys',
    );
  }
  if (new Set(settings.roles).size < 5 && settings.redis.url === undefined) {
    throw new SettingsError(
      'LUMIO_REDIS__URL (redis.url): must be set when a process runs only some roles, since relay, limits and presence span processes',
    );
  }
}

/** Addresses of the vendors, each with the path of its setting. */
function vendorAddresses(settings: Settings): [string[], string][] {
  const { twitch, google, kick, trovo, discord, spotify, paypal, streamelements } = settings;
  const vendors = Object.entries({ twitch, google, kick, trovo, discord, spotify, paypal, streamelements });
  return vendors.flatMap(([vendor, section]) =>
    Object.entries(section).flatMap(([name, value]): [string[], string][] =>
      name.endsWith('_url') && typeof value === 'string' ? [[[vendor, name], value]] : [],
    ),
  );
}

/** Whether a vendor's address is private; configuring one permits calls to it. */
export const callsPrivate = (settings: Settings): boolean =>
  vendorAddresses(settings).some(([, address]) => isPrivate(address));

function leadsOutside(address: string): boolean {
  const { protocol } = new URL(address);
  return (protocol === 'https:' || protocol === 'wss:') && !isPrivate(address);
}

function isPrivate(address: string): boolean {
  const host = new URL(address).hostname.replace(/^\[(.*)\]$/, '$1');
  return isIP(host) === 0 ? isOwnName(host) : !isPublic(host);
}

export function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true;
  return isIP(host) === 4 && host.startsWith('127.');
}
