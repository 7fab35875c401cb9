import type { Settings } from '../kernel/settings';

/** Longest address that a person is sent back to, in characters. */
export const MOST_RETURN_TO = 2048;

/**
 * The address, when it is one of the sites that the settings name; null otherwise, and always while none is named.
 * Source: spec doc2 §4.2, rulings "starting a connection".
 */
export function knownReturn({ hosts }: Pick<Settings, 'hosts'>, address: string): URL | null {
  if (!/^https?:\/\/[\x21-\x7e]+$/.test(address) || address.includes('\\') || !URL.canParse(address)) return null;
  const url = new URL(address);
  if (url.username !== '' || url.password !== '') return null;
  return [hosts.web, hosts.admin].includes(url.origin) ? url : null;
}

/** Where the vendor sends the person's browser: the page of that site which passes code and state on. */
export const callbackOf = (return_to: URL, platform: string): string =>
  `${return_to.origin}/connections/${platform}/callback`;
