import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { checkHead } from './requests/request-head';

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Headers of the connection, not of the request. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(['connection', 'upgrade', 'http2-settings', 'keep-alive']);

/**
 * Handles every request with `Upgrade`. Passes those for a WebSocket to `websocket`; declines any other protocol by
 * answering the request as an ordinary one (RFC 9110 §7.8), as clients expect that offer `h2c` with each first request.
 */
export function serveUpgrades(server: Server, websocket: UpgradeHandler | undefined): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A malformed head is refused for an upgrade as for an ordinary request.
    if (websocket && offers(request, 'websocket') && checkHead(request) === null) websocket(request, socket, head);
    else serveWithoutUpgrade(server, request, socket, head);
  });
}

const offers = ({ headers }: IncomingMessage, protocol: string): boolean =>
  (headers.upgrade ?? '').split(',').some((offer) => offer.trim().toLowerCase() === protocol);

/**
 * Returns the connection, which Node has detached, to the server with the request at its beginning; the server ends it
 * after the answer.
 */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`, 'connection: close'];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    // Unfolds the value, because a line break would begin another header.
    if (!OF_THE_CONNECTION.has(name.toLowerCase()))
      lines.push(`${name}: ${rawHeaders[i + 1]!.replace(/[\r\n]+/g, ' ')}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
