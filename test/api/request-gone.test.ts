import fastify, { type FastifyInstance } from 'fastify';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { contextOf } from '../../api/http/requests/request-state';
import { eventually } from '../support/vendor-cloud';

let app: FastifyInstance;
let gone: string[];
let sockets: Set<Socket>;
beforeEach(async () => {
  gone = [];
  sockets = new Set();
  app = fastify();
  app.decorateRequest('span', null);
  app.decorateRequest('correlation_id', '');
  app.get('/waits', async (request) => {
    const { onGone } = contextOf(request);
    sockets.add(request.raw.socket);
    await new Promise<void>((resolve) => {
      onGone!(() => {
        gone.push('first');
        resolve();
      });
      onGone!(() => gone.push('second'));
    });
  });
  app.get('/answers', async (request) => {
    const { onGone } = contextOf(request);
    sockets.add(request.raw.socket);
    for (let n = 0; n < 50; n += 1) onGone!(() => gone.push('answered'))();
    return 'ok';
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => app.close());

function open(): Socket {
  return connect((app.server.address() as AddressInfo).port, '127.0.0.1');
}

test('who waits for a caller hears when the connection ends', async () => {
  const socket = open();
  socket.write('GET /waits HTTP/1.1\r\nHost: x\r\n\r\n');
  await eventually(async () => (sockets.size === 1 ? true : undefined), 'the request');
  expect(gone).toEqual([]);
  socket.destroy();
  await eventually(async () => (gone.length === 2 ? true : undefined), 'the listeners');
  expect(gone).toEqual(['first', 'second']);
});

test('who stopped waiting hears nothing, and leaves nothing on a connection that goes on', async () => {
  const socket = open();
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const answered = (count: number) =>
    eventually(async () => (text.split('HTTP/1.1 200').length > count ? true : undefined), `answer ${count}`);
  socket.write('GET /answers HTTP/1.1\r\nHost: x\r\n\r\n');
  await answered(1);
  const [server_side] = sockets;
  const listeners = server_side!.listenerCount('close');
  for (let n = 2; n <= 5; n += 1) {
    socket.write('GET /answers HTTP/1.1\r\nHost: x\r\n\r\n');
    await answered(n);
  }
  expect([sockets.size, server_side!.listenerCount('close')]).toEqual([1, listeners]);
  socket.destroy();
  await eventually(async () => (server_side!.destroyed ? true : undefined), 'the end');
  expect(gone).toEqual([]);
});
