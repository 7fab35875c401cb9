import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { checkHead } from './request-head';

export type UpgradeHandler = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Headers that speak of the connection and not of the request. */
const OF_THE_CONNECTION: ReadonlySet<string> = new Set(['connection', 'upgrade', 'http2-settings', 'keep-alive']);

/**
 * Node hands every request with `Upgrade` to this listener. Those for a WebSocket go to `websocket`; any other protocol
 * is declined by answering the request as an ordinary one (RFC 9110 §7.8), as clients expect that offer `h2c` with each
 * first request.
 */
export function serveUpgrades(server: Server, websocket: UpgradeHandler | undefined): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A head that is refused is refused for an upgrade too, by the answer that an ordinary request gets.
    if (websocket && offers(request, 'websocket') && checkHead(request) === null) websocket(request, socket, head);
    else serveWithoutUpgrade(server, request, socket, head);
  });
}

const offers = ({ headers }: IncomingMessage, protocol: string): boolean =>
  (headers.upgrade ?? '').split(',').some((offer) => offer.trim().toLowerCase() === protocol);

/**
 * The server has let go of the connection: it gets it anew, with the request at its beginning, and ends it after the
 * answer.
 */
function serveWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex, head: Buffer): void {
  const { method, url, httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`, 'connection: close'];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    // A folded value would otherwise begin a header of its own.
    if (!OF_THE_CONNECTION.has(name.toLowerCase()))
      lines.push(`${name}: ${rawHeaders[i + 1]!.replace(/[\r\n]+/g, ' ')}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), head]));
  server.emit('connection', socket);
}
