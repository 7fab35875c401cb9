import type { FastifyReply } from 'fastify';
import type { Socket } from 'node:net';

const releases = new WeakMap<Socket, Set<() => void>>();

/**
 * Calls `release` once, at the end of the answer or of its connection. Node emits no `close` on an answer that is
 * queued behind another one when their connection ends.
 */
export function onAnswerEnd({ raw, request }: FastifyReply, release: () => void): void {
  const { socket } = request.raw;
  if (raw.closed || socket.destroyed) {
    release();
    return;
  }
  const pending = releasesOf(socket);
  const once = () => {
    if (pending.delete(once)) release();
  };
  pending.add(once);
  raw.once('close', once);
}

/** Pending releases of a connection, which share one listener, however many requests the connection carries. */
function releasesOf(socket: Socket): Set<() => void> {
  const known = releases.get(socket);
  if (known) return known;
  const pending = new Set<() => void>();
  releases.set(socket, pending);
  socket.once('close', () => {
    for (const release of pending) release();
  });
  return pending;
}
