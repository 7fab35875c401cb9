import type { Settings } from '../../kernel/settings/settings';

/** Maximum length of a return address, in characters. */
export const MAX_RETURN_URL_LENGTH = 2048;

/**
 * Parses a return address whose origin is one of the settings' sites; null for any other, and always without configured
 * sites. Source: spec doc2 §4.2, rulings "starting a connection".
 */
export function parseReturnUrl({ hosts }: Pick<Settings, 'hosts'>, address: string): URL | null {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(address) || address.includes('\\') || !URL.canParse(address)) return null;
  const url = new URL(address);
  if (url.username !== '' || url.password !== '') return null;
  return [hosts.web, hosts.admin].includes(url.origin) ? url : null;
}

/** Redirect address at the vendor: the site's page that forwards code and state. */
export const callbackOf = (return_to: URL, platform: string): string =>
  `${return_to.origin}/connections/${platform}/callback`;
