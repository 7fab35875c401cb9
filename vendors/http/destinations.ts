import { isIP } from 'node:net';
import { NotSent } from '../../kernel/job';
import { isOwnName, isPublic } from '../../lib/net/public-addresses';

export interface Rules {
  hosts: readonly string[];
  /** In development alone: plain http, and addresses of this machine and of private networks. */
  allow_loopback: boolean;
}

/**
 * The address of a call, when it is one of the client's.
 * @throws NotSent that names the rule, never more of the address than its host
 */
export function destination(address: string | URL, { hosts, allow_loopback }: Rules): URL {
  if (!URL.canParse(String(address))) throw new NotSent('the address of a call is malformed');
  // Numbers in every notation have become plain addresses here, names lower case.
  const url = new URL(address);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (url.username !== '' || url.password !== '') throw new NotSent(`${host}: an address must carry no password`);
  const own = allow_loopback && isOwn(host);
  if (url.protocol !== 'https:' && !(own && url.protocol === 'http:')) {
    throw new NotSent(`${host}: calls go over https alone`);
  }
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  // A stand-in for a vendor may serve its sockets on another port of its own.
  const listed = hosts.some((allowed) => matches(allowed, host, port) || (own && isOwn(partsOf(allowed).name)));
  if (!listed) throw new NotSent(`${host} is none of this client's hosts`);
  if (isIP(host) !== 0 && !isPublic(host, allow_loopback)) throw new NotSent(`${host} is not a public address`);
  return url;
}

function matches(allowed: string, host: string, port: string): boolean {
  const { name, wanted } = partsOf(allowed);
  if (port !== wanted) return false;
  if (name === '*') return true;
  return name.startsWith('*.') ? host.endsWith(name.slice(1)) && host.length > name.length - 1 : host === name;
}

function partsOf(allowed: string): { name: string; wanted: string } {
  const [, name = '', wanted = '443'] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(allowed) ?? [];
  return { name, wanted };
}

/** Of this machine or of a private network. */
const isOwn = (host: string): boolean => (isIP(host) === 0 ? isOwnName(host) : isPublic(host, true) && !isPublic(host));
