import { createPrivateKey, randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { startServer, type TestServer } from '../support/server';
import { eventually } from '../support/vendor-cloud';
import { hmac, kickHeaders, stripeHeaders } from '../support/webhooks';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.dispose());

const post = (path: string, body: Buffer, headers: Record<string, string>) =>
  fetch(server.base_url + path, { method: 'POST', body: new Uint8Array(body), headers });
const events = async (types: string) => {
  const headers = { authorization: `Bearer ${server.credentials.access_token}` };
  const answer = await fetch(`${server.base_url}/v1/events?limit=100&types=${types}`, { headers });
  return (await answer.json()) as { data: { external_id: string }[] };
};

test('a delivery that comes three times at once is three times 200 and one event', async () => {
  const { connections, webhook_signing } = server.credentials;
  const body = Buffer.from(
    `{"broadcaster":{"user_id":${connections.kick.platform_channel_id}},"follower":{"user_id":9007199254740993}}`,
  );
  const id = randomUUID();
  const key = createPrivateKey(webhook_signing.kick_private_key);
  const headers = {
    ...kickHeaders(body, 'channel.followed', id, new Date().toISOString(), key),
    'content-type': 'application/json',
  };
  const answers = await Promise.all([1, 2, 3].map(() => post('/v1/webhooks/kick', body, headers)));
  expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200]);
  // The records of an account are applied in their order: when a later one is there, all before it have been judged.
  const last = randomUUID();
  const after = kickHeaders(body, 'channel.followed', last, new Date().toISOString(), key);
  expect((await post('/v1/webhooks/kick', body, after)).status).toBe(200);
  const known = async () => (await events('kick:follower')).data.map((event) => event.external_id);
  await eventually(async () => ((await known()).includes(`kick:${last}`) ? true : undefined), 'the later delivery');
  expect((await known()).filter((external_id) => external_id === `kick:${id}`)).toHaveLength(1);
});

test('a delivery under a second subscription of Kick is dropped where no subscription is known', async () => {
  const { connections, webhook_signing } = server.credentials;
  const key = createPrivateKey(webhook_signing.kick_private_key);
  const broadcaster = { user_id: Number(connections.kick.platform_channel_id) };
  const body = Buffer.from(JSON.stringify({ broadcaster, subscriber: { user_id: 5 } }));
  const ids = [randomUUID(), randomUUID(), randomUUID()];
  const subscriptions = ['first', 'second', 'first'];
  for (const [n, id] of ids.entries()) {
    const headers = {
      ...kickHeaders(body, 'channel.subscription.new', id, new Date().toISOString(), key),
      'kick-event-subscription-id': subscriptions[n]!,
    };
    expect((await post('/v1/webhooks/kick', body, headers)).status).toBe(200);
  }
  const known = async () => (await events('kick:subscribe')).data.map(({ external_id }) => external_id);
  await eventually(async () => ((await known()).includes(`kick:${ids[2]}`) ? true : undefined), 'the last delivery');
  expect((await known()).sort()).toEqual([`kick:${ids[0]}`, `kick:${ids[2]}`].sort());
});

test('a signed delivery is taken whatever its content type says', async () => {
  const { connections, webhook_signing } = server.credentials;
  const path = '/v1/webhooks/trovo';
  for (const type of ['foo', 'text/plain; charset=latin1', ';', 'application/json, application/json']) {
    const payload = { type: 'channel.subscribe', channel_id: connections.trovo.platform_channel_id, id: randomUUID() };
    const body = Buffer.from(JSON.stringify(payload));
    const signature = hmac('sha256', webhook_signing.trovo_secret, body, 'hex');
    const answer = await post(path, body, { 'x-trovo-signature': signature, 'content-type': type });
    expect([type, answer.status]).toEqual([type, 200]);
  }
});

test('the bytes that arrive are what is signed, however they are sent', async () => {
  const { connections, webhook_signing } = server.credentials;
  const secret = webhook_signing.trovo_secret;
  const spell = () =>
    Buffer.from(
      JSON.stringify({
        type: 'channel.spell',
        channel_id: connections.trovo.platform_channel_id,
        message_id: randomUUID(),
      }),
    );
  const send = (body: Buffer, signatures: string[], more: Record<string, string> = {}) =>
    new Promise<number>((answered, failed) => {
      const headers = { ...more, 'x-trovo-signature': signatures };
      const sent = request(`${server.base_url}/v1/webhooks/trovo`, { method: 'POST', headers }, (answer) => {
        answer.resume();
        answered(answer.statusCode!);
      });
      sent.on('error', failed);
      // Two pieces and no length: chunked.
      sent.write(body.subarray(0, 1));
      sent.end(body.subarray(1));
    });
  const signed = (body: Buffer) => hmac('sha256', secret, body, 'hex');
  const plain = spell();
  expect(await send(plain, [signed(plain).toUpperCase()])).toBe(200);
  const marked = Buffer.concat([Buffer.from('\ufeff'), spell()]);
  expect(await send(marked, [signed(marked)])).toBe(200);
  expect(await send(marked, [signed(marked.subarray(3))])).toBe(401);
  const packed = gzipSync(spell());
  expect(await send(packed, [signed(packed)], { 'content-encoding': 'gzip' })).toBe(200);
  expect(await send(packed, [signed(plain)], { 'content-encoding': 'gzip' })).toBe(401);
  expect(await send(plain, [signed(plain), signed(plain)])).toBe(401);
  const empty = Buffer.alloc(0);
  expect(await send(empty, [signed(empty)])).toBe(200);
  const whole = Buffer.concat([spell(), Buffer.alloc(1024 * 1024, 32)]).subarray(0, 1024 * 1024);
  expect(await send(whole, [signed(whole)])).toBe(200);
  const stored = async () => (await events('trovo:spell')).data.map(({ external_id }) => external_id);
  for (const body of [plain, marked, whole]) {
    const { message_id } = JSON.parse(body.toString().replace('\ufeff', '')) as { message_id: string };
    await eventually(async () => (await stored()).includes(`trovo:${message_id}`) || undefined, 'the spell');
  }
});

test('refusals carry the table’s codes, and oversized bodies are 413', async () => {
  const codeOf = async (answer: Response) => [answer.status, ((await answer.json()) as { error: unknown }).error];
  expect(await codeOf(await post('/v1/webhooks/kick', Buffer.from('{}'), {}))).toEqual([401, 'UNAUTHORIZED']);
  const atom = Buffer.from('<feed/>');
  const signature = `sha1=${hmac('sha1', server.credentials.webhook_signing.youtube_secret, atom, 'hex')}`;
  expect(await codeOf(await post('/v1/webhooks/youtube', atom, { 'x-hub-signature': signature }))).toEqual([
    400,
    'BAD_REQUEST',
  ]);
  const large = Buffer.alloc(1024 * 1024 + 1, 32);
  expect(await codeOf(await post('/v1/webhooks/trovo', large, {}))).toEqual([413, 'BAD_REQUEST']);
  const challenge = await fetch(`${server.base_url}/v1/webhooks/youtube?hub.mode=subscribe&hub.challenge=abc`);
  expect([challenge.status, await challenge.text()]).toEqual([200, 'abc']);
  expect(challenge.headers.get('content-type')).toMatch(/^text\/plain/);
});

test('a payment vendor’s delivery is sealed in the log, counts once, and is kept by the vendor’s own times', async () => {
  const { db } = server.database!;
  const { stripe_secret, stripe_connect_secret } = server.credentials.webhook_signing;
  const object_id = `sub_${randomUUID()}`;
  const deliver = (type: string, created: number, status: string, path = 'stripe', secret = stripe_secret) => {
    const object = { id: object_id, status, customer: 'cus_1', customer_email: 'payer@example.com' };
    const event = { id: `evt_${created}`, type: `customer.subscription.${type}`, created, data: { object } };
    const body = Buffer.from(JSON.stringify(event));
    return post(`/v1/webhooks/${path}`, body, stripeHeaders(body, Math.floor(Date.now() / 1000), secret));
  };
  const known = () => db.query('select status, source from payment_objects where object_id = $1', [object_id]);
  const again = () => deliver('deleted', 1_700_000_100, 'canceled');
  const answers = await Promise.all([again(), again(), again(), deliver('updated', 1_700_000_050, 'active')]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  await eventually(async () => ((await known())[0]?.status === 'canceled' ? true : undefined), 'the subscription');
  const counted = async () => {
    const rows = await db.query("select external_id from ledger where projection = 'payment-objects'");
    return rows.map(({ external_id }) => external_id).sort();
  };
  const both = ['stripe:evt_1700000050', 'stripe:evt_1700000100'];
  await eventually(async () => ((await counted()).length >= 2 ? true : undefined), 'both events');
  expect([await counted(), await known()]).toEqual([both, [{ status: 'canceled', source: 'platform' }]]);
  const holding = (text: string) =>
    db.query("select 1 from broker_records where position(convert_to($1, 'UTF8') in value) > 0", [text]);
  const written = await holding('payer@example.com');
  expect((await holding(both[0]!)).length).toBeGreaterThan(0);
  expect(written).toEqual([]);
  expect((await deliver('updated', 1, 'x', 'stripe-connect')).status).toBe(401);
  expect((await deliver('updated', 1_700_000_060, 'x', 'stripe-connect', stripe_connect_secret)).status).toBe(200);
  expect((await post('/v1/webhooks/paypal-payouts', Buffer.from('{}'), {})).status).toBe(401);
  const openapi = (await (await fetch(`${server.base_url}/v1/openapi.json`)).json()) as { paths: object };
  const described = Object.keys(openapi.paths).filter((path) => /stripe|paypal/.test(path));
  expect(described).toEqual(['/v1/webhooks/stripe']);
});
