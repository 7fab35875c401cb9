import { parse } from 'tldts';

/** An address with a scheme, whole. */
const ADDRESS = /\b(?:https?|ftp):[\\/]*(\S*)/giu;
/** Full stops of other scripts, which browsers read as dots. */
const DOTS = /[\u3002\uff0e\uff61]/gu;
const HOST = /[\p{L}\p{M}\p{N}._-]+/gu;
/** The host of an address, without the punctuation of a sentence behind it. */
const NAMED_HOST = /^(?:\[[^\]]*\]|[\p{L}\p{M}\p{N}._%-]*[\p{L}\p{M}\p{N}])/u;
/** Begins what follows the host of an address. */
const PATH = /^(?::\d+)?[/?#\\]/;
/** Follows the host of an address with a scheme. */
const PATH_OR_END = /^(?::\d*)?(?:[/?#\\]|$)/;

/** Hosts of the links in a text, with and without a scheme, in ASCII. */
export function linkedHosts(text: string): string[] {
  const seen = text
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .replace(DOTS, '.');
  const hosts: string[] = [];
  const rest = seen.replace(ADDRESS, (_address, after: string) => {
    const authority = /^[^/?#\\]*/.exec(after)![0];
    const from = authority.lastIndexOf('@') + 1;
    const named = NAMED_HOST.exec(authority.slice(from))?.[0] ?? '';
    const host = asciiHost(named);
    if (host !== null) hosts.push(host);
    const behind = after.slice(from + named.length);
    // Punctuation ends the address; another host may follow it.
    return named !== '' && PATH_OR_END.test(behind) ? ' ' : ` ${behind} `;
  });
  for (const token of rest.split(/\s+/u)) hosts.push(...bareHosts(token));
  return hosts;
}

/** Hosts of a text without blanks, up to the path of the first. What precedes an `@` is user information. */
function bareHosts(token: string): string[] {
  const hosts: string[] = [];
  for (const { 0: run, index } of token.matchAll(HOST)) {
    const after = token.slice(index + run.length);
    if (after.startsWith('@')) continue;
    const host = asciiHost(run.replace(/^[._-]+|[._-]+$/gu, ''));
    if (host === null || !isPublic(host)) continue;
    hosts.push(host);
    if (PATH.test(after)) break;
  }
  return hosts;
}

/** Null of a text that is no host. */
function asciiHost(text: string): string | null {
  const url = `http://${text.replace(/\.$/, '')}`;
  return text !== '' && URL.canParse(url) ? new URL(url).hostname : null;
}

/** Whether a host lies below a suffix under which names are registered. */
function isPublic(host: string): boolean {
  const { domain, isIcann } = parse(host, { allowPrivateDomains: false });
  return domain !== null && isIcann === true;
}

/** The domain that an account allows, in ASCII; null of one that is no domain, or a suffix that many share. */
export function allowedDomain(text: string): string | null {
  const [host, ...others] = linkedHosts(text);
  if (host === undefined || others.length > 0) return null;
  return parse(host, { allowPrivateDomains: true }).domain === null ? null : host;
}

/** Whether a host is one of the domains, or below one. */
export const isAllowed = (host: string, domains: readonly string[]): boolean =>
  domains.some((domain) => host === domain || host.endsWith(`.${domain}`));
