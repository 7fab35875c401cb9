import type { FastifyInstance } from 'fastify';
import type { Socket } from 'node:net';

/** Requests that may wait on a connection; one with more is closed. */
const MAX_WAITING = 100;

/**
 * Lets a request wait until the answer before it on its connection was sent, so that a connection has one answer at a
 * time. Nothing more is read of the connection meanwhile. Requests that wait on a connection that ends do not run.
 */
export function answerInTurn(app: FastifyInstance): void {
  /** Requests that wait, for each connection with a request that runs. */
  const connections = new WeakMap<Socket, (() => void)[]>();

  function ended(socket: Socket): void {
    const next = connections.get(socket)!.shift();
    if (next === undefined) {
      connections.delete(socket);
      return;
    }
    if (socket.destroyed || !socket.writable) return;
    if (connections.get(socket)!.length === 0) socket.resume();
    next();
  }

  app.addHook('onRequest', ({ raw: { socket } }, { raw: answer }, done) => {
    const begin = () => {
      answer.once('close', () => ended(socket));
      done();
    };
    const waiting = connections.get(socket);
    if (waiting === undefined) {
      connections.set(socket, []);
      begin();
    } else if (waiting.length < MAX_WAITING) {
      waiting.push(begin);
      socket.pause();
    } else {
      socket.destroy();
    }
  });
}
