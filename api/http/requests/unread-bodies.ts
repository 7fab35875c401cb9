import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Socket } from 'node:net';

/** Most bytes and milliseconds for which the rest of a refused body is read, so that the client sees its answer. */
const DRAINED_BYTES = 64 * 1024;
const DRAINED_MS = 1_000;

/**
 * Closes the connection of each request that is answered before its body has arrived. The rest of the body is drained
 * within bounds, because a close with unread bytes would reset the connection and lose the answer.
 */
export function closeUnreadBodies(app: FastifyInstance): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const { complete, headers } = request.raw;
    const has_body = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
    if (!complete && has_body) closeAfter(reply);
    done();
  });
}

function closeAfter(reply: FastifyReply): void {
  void reply.header('connection', 'close');
  const { raw } = reply.request;
  const { socket } = raw;
  // Node closes the connection by this method at the end of an answer with `Connection: close`.
  socket.destroySoon = () => endConnection(socket);
  // Node ends a request that is not answered yet only, and whoever reads the body would wait for ever.
  socket.once('close', () => raw.destroy());
}

/** Ends a connection of which more may arrive, after the text. Its request, when not complete, is not carried out. */
export function endConnection(socket: Socket, text = ''): void {
  socket.end(text);
  let left = DRAINED_BYTES;
  // The parser gets no more bytes, so that a request behind the body is not carried out.
  socket.removeAllListeners('data');
  const count = (bytes: Buffer) => {
    left -= bytes.length;
    if (left <= 0) socket.destroy();
  };
  socket.on('data', count);
  const timer = setTimeout(() => socket.destroy(), DRAINED_MS);
  socket.once('end', () => socket.destroy()).once('close', () => clearTimeout(timer));
  socket.resume();
}
