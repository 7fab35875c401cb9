import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { OriginPolicy } from '../../../lib/net/origins';
import { LIMITS } from '../channel/limits';

/**
 * The answer to an upgrade that is refused before the 101: an ordinary HTTP response with the two members of doc3 §4.1.
 */
export interface Refusal {
  status: number;
  error: string;
  message: string;
  retry_after_seconds?: number;
}

/** The one version that there is (RFC 6455). */
const VERSION = '13';

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  503: 'Service Unavailable',
};

/** Answers and closes. The socket is not a server response any more, so the bytes are written by hand. */
export function refuse(socket: Duplex, refusal: Refusal): void {
  const body = JSON.stringify({ error: refusal.error, message: refusal.message });
  const lines = [
    `HTTP/1.1 ${refusal.status} ${REASONS[refusal.status] ?? 'Error'}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
    'Connection: close',
    ...(refusal.status === 401
      ? [`WWW-Authenticate: Bearer error="invalid_token", error_description="${refusal.message}"`]
      : []),
    ...(refusal.status === 426 ? [`Sec-WebSocket-Version: ${VERSION}`] : []),
    ...(refusal.retry_after_seconds === undefined ? [] : [`Retry-After: ${refusal.retry_after_seconds}`]),
  ];
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // A peer that neither reads nor closes does not keep the connection.
  const timer = setTimeout(() => socket.destroy(), 2_000);
  socket.once('close', () => clearTimeout(timer));
}

/** The URL of an upgrade request; null when it is not one of ours to read. */
export function requestUrl(req: IncomingMessage): URL | null {
  try {
    return new URL(req.url ?? '/', 'http://localhost');
  } catch {
    return null;
  }
}

/**
 * Refusal that needs no credential check; null without one.
 * @param host host that the client addressed
 */
export function refuseEarly(
  req: IncomingMessage,
  url: URL | null,
  origins: OriginPolicy,
  host: string | undefined,
): Refusal | null {
  if (url === null || url.pathname.replace(/\/$/, '') !== '/v1/ws') {
    return { status: 404, error: 'NOT_FOUND', message: 'Not found' };
  }
  if (req.method !== 'GET') return { status: 405, error: 'BAD_REQUEST', message: 'WebSocket upgrades use GET' };
  if (req.rawHeaders.length / 2 > LIMITS.headers)
    return { status: 431, error: 'BAD_REQUEST', message: 'Too many headers' };
  if (url.searchParams.getAll('token').length > 1)
    return { status: 400, error: 'BAD_REQUEST', message: 'More than one token' };
  if (req.headers['sec-websocket-version'] !== VERSION)
    return { status: 426, error: 'BAD_REQUEST', message: 'Only WebSocket version 13 is spoken' };
  if (!/^[+/0-9A-Za-z]{22}==$/.test(req.headers['sec-websocket-key'] ?? ''))
    return { status: 400, error: 'BAD_REQUEST', message: 'Missing or invalid Sec-WebSocket-Key' };
  if (!origins.allowsSocket(req.headers.origin, host, (url.searchParams.get('token') ?? '') !== ''))
    return { status: 403, error: 'FORBIDDEN', message: 'Origin not allowed' };
  return null;
}
