import type { FastifyRequest } from 'fastify';

/** Loopback names. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;
const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Origin of links in answers: the configured public URL; without one the request's host, when that is this machine's
 * own name or address. Any other host may be forged, so that links are then paths.
 */
export function originOf(settings: {
  public_url?: string | undefined;
  host: string;
}): (request: FastifyRequest) => string {
  const configured = settings.public_url?.replace(/\/+$/, '');
  if (configured !== undefined) return () => configured;
  const bound = bracketed(settings.host);
  return (request) => {
    const name = HOST.exec(request.host)?.[1];
    const own =
      name !== undefined &&
      (LOOPBACK.test(name) || name === bound || name === bracketed(request.raw.socket.localAddress ?? ''));
    return own ? `${request.protocol}://${request.host}` : '';
  };
}

/** An address in the form of a URL. */
function bracketed(address: string): string {
  const plain = address.replace(/^::ffff:(?=\d+\.)/i, '');
  return plain.includes(':') ? `[${plain}]` : plain;
}

/** The request's own path and query without `token`, because a credential must not be returned in a link. */
export function ownPath(url: string): string {
  const [path, pairs] = split(url);
  return joined(
    path,
    pairs.filter((pair) => nameOf(pair) !== 'token'),
  );
}

/** The link with another value of a parameter, or without it; other parameters are unchanged. */
export function linkWith(self: string, name: string): (value: string | number | null) => string {
  const [path, pairs] = split(self);
  const kept = pairs.filter((pair) => nameOf(pair) !== name);
  return (value) => joined(path, value === null ? kept : [...kept, `${name}=${value}`]);
}

function split(url: string): [path: string, pairs: string[]] {
  const mark = url.indexOf('?');
  if (mark === -1) return [url, []];
  return [
    url.slice(0, mark),
    url
      .slice(mark + 1)
      .split('&')
      .filter((pair) => pair !== ''),
  ];
}

const joined = (path: string, pairs: readonly string[]): string =>
  pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;

/** Decoded name of a pair, because a name may be spelled with escapes. */
function nameOf(pair: string): string {
  const end = pair.indexOf('=');
  const name = end === -1 ? pair : pair.slice(0, end);
  if (!name.includes('%')) return name;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
