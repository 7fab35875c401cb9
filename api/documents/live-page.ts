import type { FastifyInstance } from 'fastify';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError } from '../../kernel/errors';
import type { Settings } from '../../kernel/settings/settings';

/** Allows no other origins but pictures of chats, no inline content, and no scripts made from text. */
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: https:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const FILES = [
  ['/', 'live.html', 'text/html; charset=utf-8'],
  ['/live.js', 'live.js', 'text/javascript; charset=utf-8'],
  ['/live.css', 'live.css', 'text/css; charset=utf-8'],
] as const;

type PageSettings = Pick<Settings, 'env' | 'roles'>;

/** Whether this process serves the page: in development, with REST and WebSocket on one address. */
const isServed = ({ env, roles }: PageSettings): boolean =>
  env === 'development' && roles.includes('api') && roles.includes('realtime');

/**
 * Serves the live page at `GET /`. The page has no credential, and is served only under this machine's own names, so
 * that another site whose name resolves to this address (DNS rebinding) cannot load it.
 * @param folder folder of the built page
 */
export function registerLivePage(app: FastifyInstance, settings: PageSettings, folder: string): void {
  if (!isServed(settings)) return;
  for (const [url, name, type] of FILES) {
    const text = readFileSync(join(folder, name), 'utf8');
    app.get(url, async (request, reply) => {
      if (!isLoopback(request.headers.host))
        throw new ApiError('FORBIDDEN', 'The live page is for this machine: open it at localhost or 127.0.0.1');
      return reply.header('content-security-policy', CSP).type(type).send(text);
    });
  }
}

/**
 * Address of the live page with a token in the fragment, which browsers send to no server; null when the page is not
 * served, or not on a loopback address.
 */
export function livePageAddress(base_url: string, settings: PageSettings, token: string): string | null {
  const url = new URL(base_url);
  if (['0.0.0.0', '[::]'].includes(url.hostname)) url.hostname = '127.0.0.1';
  if (!isServed(settings) || !isLoopback(url.host)) return null;
  url.hash = `token=${token}`;
  return url.href;
}

/** Whether a `Host` is a loopback name. */
function isLoopback(host = ''): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i.test(host);
}
