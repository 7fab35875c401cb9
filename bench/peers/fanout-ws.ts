import { createServer } from 'node:http';
import type { WebSocket, WebSocketServer } from 'ws';
import { peer } from '../harness';

/** Plain `ws`: messages of a client of `/publish` go to all others, as in its documentation of a broadcast. */
const { WebSocketServer: Server, WebSocket: Client } = peer<{
  WebSocketServer: typeof WebSocketServer;
  WebSocket: typeof WebSocket;
}>('ws');
const http = createServer();
const sockets = new Server({ server: http });

sockets.on('connection', (socket, { url }) => {
  socket.on('error', () => socket.terminate());
  if (url !== '/publish') return;
  sockets.clients.delete(socket);
  socket.on('message', (data, binary) => {
    for (const client of sockets.clients) if (client.readyState === Client.OPEN) client.send(data, { binary });
  });
});
http.listen(0, '127.0.0.1', () => {
  const { port } = http.address() as { port: number };
  process.stdout.write(`peer ready at http://127.0.0.1:${port}\n`);
});
process.once('SIGTERM', () => process.exit(0));
