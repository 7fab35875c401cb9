import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../kernel/errors';
import type { Settings } from '../../kernel/settings/settings';

/** Hosts of emotes, badges, avatars and covers. */
const PICTURES = [
  'static-cdn.jtvnw.net',
  'cdn.betterttv.net',
  'cdn.frankerfacez.com',
  'cdn.7tv.app',
  'files.kick.com',
  'yt3.ggpht.com',
  'i.scdn.co',
  'img.trovo.live',
].map((host) => `https://${host}`);

const FILES = [
  ['/overlay.js', 'overlay.js', 'text/javascript; charset=utf-8'],
  ['/overlay.css', 'overlay.css', 'text/css; charset=utf-8'],
] as const;

type Place = Pick<Settings, 'hosts' | 'roles'>;

/**
 * Serves the pages of overlays and widgets to browser sources, for any key: only the token, which the page sends on its
 * socket, opens anything.
 * @param folder folder of the built page
 * @param hostOf host that the client addressed
 */
export function registerOverlayPage(
  app: FastifyInstance,
  { hosts, roles }: Place,
  folder: string,
  hostOf: (request: FastifyRequest) => string | undefined,
): void {
  if (!roles.includes('api')) return;
  const own_host = hosts.overlay === undefined ? null : new URL(hosts.overlay).host;
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    `img-src 'self' data: ${PICTURES.join(' ')}`,
    "media-src 'self'",
    "font-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    `frame-ancestors ${hosts.web ?? "'none'"}`,
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  const serve = (name: string, type: string) => {
    const text = readFileSync(join(folder, name), 'utf8');
    return async (request: FastifyRequest, reply: FastifyReply) => {
      if (own_host !== null && hostOf(request) !== own_host) throw new ApiError('NOT_FOUND', 'Not found');
      return reply
        .header('content-security-policy', policy)
        .header('x-content-type-options', 'nosniff')
        .header('referrer-policy', 'no-referrer')
        .header('cache-control', 'no-cache')
        .type(type)
        .send(text);
    };
  };
  const page = serve('overlay.html', 'text/html; charset=utf-8');
  app.get('/overlay/:key', page);
  app.get('/widget/:id', page);
  for (const [url, name, type] of FILES) app.get(url, serve(name, type));
}
