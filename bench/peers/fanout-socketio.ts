import { createServer } from 'node:http';
import { peer } from '../harness';

interface Io {
  on(event: 'connection', listener: (socket: Socket) => void): void;
  to(room: string): { emit(event: string, data: unknown): void };
}
interface Socket {
  handshake: { auth: { publisher?: boolean } };
  join(room: string): void;
  on(event: string, listener: (data: unknown) => void): void;
}

/** Socket.IO: every client is in the room, and the publisher's messages are emitted to it. */
const { Server } = peer<{ Server: new (http: unknown, options: object) => Io }>('socket.io');
const http = createServer();
const io = new Server(http, { transports: ['websocket'], perMessageDeflate: false });
io.on('connection', (socket) => {
  if (!socket.handshake.auth.publisher) socket.join('room');
  socket.on('publish', (data) => io.to('room').emit('message', data));
});
http.listen(0, '127.0.0.1', () => {
  const { port } = http.address() as { port: number };
  process.stdout.write(`peer ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
