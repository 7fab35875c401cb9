import { connect, type Socket } from 'node:net';
import { testDatabase, type TestDatabase } from '../../support/database';
import { PATIENCE_MS } from '../../support/patience';
import { ACCOUNT, publish, realtimeNode, type RealtimeNode } from '../../support/realtime';

const EVENTS = `events:${ACCOUNT}`;
let t: TestDatabase;
let node: RealtimeNode;

beforeEach(async () => {
  t = await testDatabase();
  // The clients here send no pings, and a burst of 40 MB takes longer than their silence may on a busy machine.
  node = await realtimeNode(t, { windows: { silence_ms: 120_000, stall_ms: 30_000 } });
});
afterEach(async () => {
  await node.stop();
  await t.drop();
});

const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

/** A client that completes the handshake and subscribes, then never reads again. */
async function stalled(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  const text = JSON.stringify({ type: 'subscribe', channel: EVENTS });
  const frame = Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => {
    let head = '';
    socket.on('data', (chunk) => {
      head += chunk.toString('latin1');
      if (head.includes('"subscribed"')) resolve();
    });
    socket.write(
      'GET /v1/ws?token=good HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n' +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    );
    socket.write(frame);
  });
  socket.pause();
  return socket;
}

describe('slow readers', () => {
  const big = (from: number, to: number): { n: number; pad: string }[] =>
    range(from, to).map((n) => ({ n, pad: 'x'.repeat(20_000) }));

  test('a socket that takes nothing for the window is destroyed', async () => {
    const own = await realtimeNode(t, { windows: { silence_ms: 60_000, stall_ms: 3_000 } });
    const socket = await stalled(own.url);
    expect(own.realtime.stats().sessions).toBe(1);
    await publish(t, own, EVENTS, big(1, 900));
    const deadline = Date.now() + PATIENCE_MS;
    while (own.realtime.stats().sessions > 0 && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect(own.realtime.stats().sessions).toBe(0);
    socket.destroy();
    await own.stop();
  });
});
