import type { LookupFunction } from 'node:net';
import { WebSocket } from 'ws';

const HANDSHAKE_MS = 10_000;

/** A WebSocket to an address that was checked; redirects are not followed, and no compression is offered. */
export function openSocket(
  url: URL,
  {
    headers,
    max_bytes,
    lookup,
  }: { headers?: Readonly<Record<string, string>>; max_bytes: number; lookup: LookupFunction },
): WebSocket {
  return new WebSocket(url.href.replace(/^http/, 'ws'), {
    headers: { ...headers },
    maxPayload: max_bytes,
    handshakeTimeout: HANDSHAKE_MS,
    followRedirects: false,
    // Few bytes could become many.
    perMessageDeflate: false,
    lookup,
  });
}
