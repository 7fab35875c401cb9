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

const [HTML, JS, CSS] = ['html', 'javascript', 'css'].map((type) => `text/${type}; charset=utf-8`) as [
  string,
  string,
  string,
];
const FRAME = '/overlay-frame';
const FILES = [
  ['/overlay.js', 'overlay.js', JS],
  ['/overlay.css', 'overlay.css', CSS],
] as const;
const FRAME_FILES = [
  [FRAME, 'overlay-frame.html', HTML],
  ['/overlay-frame.js', 'overlay-frame.js', JS],
  ['/overlay-frame.css', 'overlay-frame.css', CSS],
] as const;

/** Host with or without a port, as a policy takes it. */
const HOST = /^[\w.-]+(:\d+)?$/;
/** Stands where a client addresses no host. */
const NO_HOST = 'invalid.invalid';

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
  const site = hosts.web === undefined ? '' : ` ${hosts.web}`;
  /** A frame of a custom layer goes nowhere else: its page allows this address alone. */
  const page_policy = (host: string) =>
    [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
      `img-src 'self' data: ${PICTURES.join(' ')}`,
      "media-src 'self'",
      "font-src 'self'",
      `frame-src ${host}${FRAME}`,
      "base-uri 'none'",
      "form-action 'none'",
      `frame-ancestors ${hosts.web ?? "'none'"}`,
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ].join('; ');
  /**
   * The frame evaluates code after it has taken peer connections away, which no policy bounds. Inline scripts are not
   * allowed: a frame inside it would run them with peer connections of its own.
   */
  const frame_policy = (host: string) =>
    [
      "default-src 'none'",
      `script-src ${host}${FRAME}.js 'unsafe-eval'`,
      "style-src 'self' 'unsafe-inline'",
      "img-src 'self' data:",
      "media-src 'self' data:",
      "font-src 'self' data:",
      "base-uri 'none'",
      "form-action 'none'",
      `frame-ancestors 'self'${site}`,
      'sandbox allow-scripts',
    ].join('; ');
  const serve = (name: string, type: string, policy: (host: string) => string) => {
    const text = readFileSync(join(folder, name), 'utf8');
    return async (request: FastifyRequest, reply: FastifyReply) => {
      const host = hostOf(request) ?? '';
      if (own_host !== null && host !== own_host) throw new ApiError('NOT_FOUND', 'Not found');
      return reply
        .header('content-security-policy', policy(HOST.test(host) ? host : NO_HOST))
        .header('x-content-type-options', 'nosniff')
        .header('referrer-policy', 'no-referrer')
        .header('x-dns-prefetch-control', 'off')
        .header('cache-control', 'no-cache')
        .type(type)
        .send(text);
    };
  };
  const page = serve('overlay.html', HTML, page_policy);
  app.get('/overlay/:key', page);
  app.get('/widget/:id', page);
  for (const [url, name, type] of FILES) app.get(url, serve(name, type, page_policy));
  for (const [url, name, type] of FRAME_FILES) app.get(url, serve(name, type, frame_policy));
}
