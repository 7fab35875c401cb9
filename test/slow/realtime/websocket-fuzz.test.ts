import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { testDatabase, type TestDatabase } from '../../support/database';
import { until } from '../../support/projections';
import { clientFrame, RawSocket, upgradeHead } from '../../support/raw-socket';
import { ACCOUNT, Client, realtimeNode, type RealtimeNode } from '../../support/realtime';

const EVENTS = `events:${ACCOUNT}`;

let t: TestDatabase;
let node: RealtimeNode;
beforeAll(async () => {
  t = await testDatabase();
  node = await realtimeNode(t, { windows: { silence_ms: 30_000, stall_ms: 30_000, beat_ms: 500 } });
});
afterAll(async () => {
  await node?.stop();
  await t?.drop();
});

/** A network between a client and the node, which may go away: then it carries neither bytes nor ends. */
async function network(port: number) {
  const links: Socket[] = [];
  const state = { gone: false };
  const proxy = createServer((near) => {
    const far = connect({ host: '127.0.0.1', port });
    links.push(near, far);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('error', () => undefined);
      from.on('data', (chunk: Buffer) => void (state.gone || to.write(chunk)));
      from.on('end', () => void (state.gone || to.end()));
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return {
    url: `ws://127.0.0.1:${(proxy.address() as AddressInfo).port}/v1/ws`,
    leave: () => void (state.gone = true),
    async close() {
      for (const link of links) link.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}

test('half-open clients are gone after the silence, whatever they were about to say', async () => {
  const own = await realtimeNode(t, { windows: { silence_ms: 2_500, stall_ms: 2_500, beat_ms: 100 } });
  const port = Number(new URL(own.url).port);
  const between = await network(port);
  const begun = [
    Buffer.alloc(0),
    clientFrame('{"type":"ping"}').subarray(0, 3),
    clientFrame('x'.repeat(60_000)).subarray(0, 30_000),
    clientFrame('x', { fin: false }),
  ];
  const raws = await Promise.all(begun.map(() => RawSocket.open(`${own.url}?token=good`)));
  raws.forEach((raw, n) => {
    raw.write(begun[n]!);
    // Nothing is read any more, and nothing is answered.
    raw.socket.pause();
  });
  const vanished = await Client.open(between.url);
  await vanished.subscribe(EVENTS);
  between.leave();
  // A socket that sends a frame byte by byte stays silent.
  const dripping = await RawSocket.open(`${own.url}?token=good`);
  const frame = clientFrame('x'.repeat(1_000));
  let at = 0;
  const drip = setInterval(() => dripping.write(frame.subarray(at, (at += 1))), 50);
  // A connection with an unfinished upgrade is not a session.
  const half = connect({ host: '127.0.0.1', port });
  half.write(upgradeHead('/v1/ws?token=good').slice(0, -2));
  expect(own.realtime.stats()).toEqual({ sessions: 6, channels: 1 });
  await dripping.until(() => dripping.close_code === 4408, 'the close');
  clearInterval(drip);
  await until(() => own.realtime.stats().sessions === 0);
  expect(own.realtime.stats()).toEqual({ sessions: 0, channels: 0 });
  half.destroy();
  for (const raw of [...raws, dripping]) raw.destroy();
  await between.close();
  await own.stop();
});
