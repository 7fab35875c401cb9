import { createPrivateKey, randomUUID } from 'node:crypto';
import { startServer, type TestServer } from './support/server';
import { eventually } from './support/vendor-cloud';
import { hmac, kickHeaders } from './support/webhooks';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
}, 120_000);
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
