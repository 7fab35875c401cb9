import { connect } from 'node:net';
import { createLocalSlots } from '../../engines/slots/local';
import { testDatabase, type TestDatabase } from '../support/database';
import { until } from '../support/projections';
import { parseAnswer, rawHttp } from '../support/raw-http';
import { caller, Client, realtimeNode, refused, UNCOUNTED } from '../support/realtime';

/** Rulings, "sockets per caller", over real sockets. */
describe('sockets of one caller', () => {
  let t: TestDatabase;
  const clients: Client[] = [];
  beforeAll(async () => {
    t = await testDatabase(2);
  });
  afterAll(() => t.drop());
  afterEach(() => {
    for (const client of clients.splice(0)) client.end();
  });

  async function fill(url: string, token: string | null, count: number, headers: Record<string, string> = {}) {
    const opened = Array.from({ length: count }, () => Client.open(url, token, { headers }));
    clients.push(...(await Promise.all(opened)));
  }

  const tooMany = {
    status: 429,
    body: { error: 'RATE_LIMIT_EXCEEDED', message: 'Rate limit exceeded' },
    headers: { 'retry-after': '5', connection: 'close' },
  };

  test('are at most 100 on all nodes; the next is 429 before the switch, and one that goes makes room', async () => {
    const slots = createLocalSlots();
    const [one, two] = [await realtimeNode(t, { slots }), await realtimeNode(t, { slots })];
    for (const node of [one, two]) {
      node.callers.set('other', caller({ rate_bucket: 'user:u2' }));
      node.callers.set('key', caller({ kind: 'service_key', rate_bucket: 'key:k1' }));
    }
    await fill(one.url, 'good', 60);
    await fill(two.url, 'good', 40);
    for (const node of [one, two]) expect(await refused(`${node.url}?token=good`)).toMatchObject(tooMany);
    // Others are not counted with them.
    await fill(one.url, 'other', 1);
    await fill(two.url, 'key', 100);
    expect(await refused(`${two.url}?token=key`)).toMatchObject(tooMany);

    const gone = clients[0]!;
    gone.end();
    await until(() => one.realtime.stats().sessions === 60);
    await fill(one.url, 'good', 1);
    expect(await refused(`${one.url}?token=good`)).toMatchObject(tooMany);
  });

  test('of a system key are as many as it likes', async () => {
    const node = await realtimeNode(t, { slots: createLocalSlots() });
    node.callers.set('system', caller({ kind: 'system_key', rate_bucket: 'system' }));
    await fill(node.url, 'system', 130);
    expect(node.realtime.stats().sessions).toBe(130);
  });

  test('that is nobody are 20 of one address, and of one /64 in IPv6', async () => {
    const node = await realtimeNode(t, {
      slots: createLocalSlots(),
      client_ip: (req) => String(req.headers['x-address']),
    });
    const from = (address: string) => ({ 'x-address': address });
    await fill(node.url, null, 20, from('192.0.2.1'));
    expect(await refused(node.url, { headers: from('192.0.2.1') })).toMatchObject(tooMany);
    await fill(node.url, null, 1, from('192.0.2.2'));
    for (let n = 0; n < 20; n += 1) await fill(node.url, null, 1, from(`2001:db8:0:1::${n.toString(16)}`));
    expect(await refused(node.url, { headers: from('2001:db8:0:1:ffff::1') })).toMatchObject(tooMany);
    await fill(node.url, null, 1, from('2001:db8:0:2::1'));
    // Who brings a credential is not counted by address.
    await fill(node.url, 'good', 25, from('192.0.2.1'));
  });

  test('whose handshake is wrong, or who leave during it, hold no place', async () => {
    const slots = createLocalSlots();
    const entering: (() => void)[] = [];
    const node = await realtimeNode(t, {
      slots,
      resolve: () => new Promise((resolve) => entering.push(() => resolve({ caller: caller(), failure: null }))),
    });
    const { port, host } = new URL(node.url);
    const upgrade = (version: string, protocol: string) =>
      `GET /v1/ws HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      `Sec-WebSocket-Version: ${version}\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${protocol}\r\n`;
    const origin = node.url.replace('ws:', 'http:');
    const old = parseAnswer(await rawHttp(origin, upgrade('7', '')));
    expect([old.status, old.headers['sec-websocket-version'], JSON.parse(old.body).error]).toEqual([
      426,
      '13',
      'BAD_REQUEST',
    ]);
    // Refused after it was let in, by the handshake itself.
    const wrong = rawHttp(origin, upgrade('13', 'Sec-WebSocket-Protocol: ,\r\n'));
    const leaving = connect(Number(port), '127.0.0.1', () => leaving.write(upgrade('13', '')));
    await until(() => entering.length === 2);
    leaving.destroy();
    await new Promise((resolve) => leaving.once('close', resolve));
    for (const enter of entering) enter();
    expect(parseAnswer(await wrong).status).toBe(400);
    await until(async () => {
      const free = await slots.take('user:u1', 1);
      if (free) slots.giveBack('user:u1');
      return free;
    });
    expect(node.realtime.stats().sessions).toBe(0);
  });

  test('that has no units left after a refused message is closed instead of left unread', async () => {
    let calls = 0;
    const counts = { ...UNCOUNTED, pace: async () => ((calls += 1) < 2 ? 0 : 20_000) };
    const node = await realtimeNode(t, { counts });
    const client = await Client.open(node.url, null);
    clients.push(client);
    const closed = new Promise((done) => client.ws.once('close', done));
    client.send('{');
    expect(await closed).toBe(1008);
    await until(() => node.realtime.stats().sessions === 0);
  });
});
