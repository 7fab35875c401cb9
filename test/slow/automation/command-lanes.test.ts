import { randomUUID } from 'node:crypto';
import { TOPICS } from '../../../domain/common/records';
import { chatRecord, message } from '../../support/chat-records';
import { promised, probeOf } from '../../support/patience';
import { engines, type Engines } from '../../support/projections';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';
import type { FakeAnswer } from '../../vendors/cloud';
import { FakeChatCloud } from '../../vendors/chat-cloud';

const WEB = 'https://app.example';
const MASTER_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;
/** Channel of the second account. */
const QUIET = '9200';
const WAITING = 10_000;
/** Lines beyond those that wait at last: their answers end while the others are decided. */
const MORE = 200;
const PERSONS = 100;
const WITHIN_MS = 2_000;

let cloud: FakeChatCloud;
let server: TestServer;
let on: Engines;
let busy: string;
/** Answer of the platform to messages for the busy channel. */
let answerOf: () => FakeAnswer | Promise<FakeAnswer>;
/** Messages that the platform took. */
const taken: { content: string; channel: string }[] = [];

beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  cloud.on('POST /public/v1/chat', ({ body }) => {
    const { content, broadcaster_user_id } = JSON.parse(body) as { content: string; broadcaster_user_id: number };
    const channel = String(broadcaster_user_id);
    if (channel === busy) return answerOf();
    taken.push({ content, channel });
    return { body: { data: { is_sent: true, message_id: randomUUID() }, message: 'OK' } };
  });
  server = await startServer({ env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB, LUMIO_SECRETS__KEYS: MASTER_KEY } });
  on = await engines(server.database!.db as never);
  const { credentials, base_url } = server;
  busy = credentials.connections.kick.platform_channel_id;
  const [first, second] = [credentials, credentials.other].map(
    ({ access_token }) => new ApiClient(base_url, access_token),
  );
  await connect(first!, 'bot', '555');
  await connect(second!, 'channel', QUIET);
  await connect(second!, 'bot', '556');
  for (const [api, name] of [
    [first!, 'full-hang'],
    [first!, 'full-429'],
    [second!, 'quick'],
  ] as const)
    await make(api, name);
  await quiet().kickLine('!quick first');
  await eventually(() => isTaken('first'), 'the first answer');
});
afterAll(async () => {
  await on?.close();
  await server?.dispose();
  await cloud?.close();
});

async function connect(api: ApiClient, kind: string, login: string): Promise<void> {
  const begun = await api.send('POST', '/v1/connections/oauth/kick/start', { kind, return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, login);
  expect((await api.send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
}

async function make(api: ApiClient, name: string): Promise<void> {
  const made = await api.send('POST', '/v1/bot-commands', { name, response_type: 'text', response: '{{args}}' });
  expect(made.status).toBe(201);
}

/** The platform as it reports lines of the second account's channel. */
function quiet(): VendorCloud {
  const { credentials, base_url } = server;
  const { connections } = credentials;
  const kick = { ...connections.kick, platform_channel_id: QUIET };
  const vendor = new VendorCloud(base_url, { ...credentials, connections: { ...connections, kick } });
  const of_lines = [...cloud.subscriptions.values()].find(
    (one) => one.owner === QUIET && one.event === 'chat.message.sent',
  );
  vendor.kick_subscription = of_lines!.id;
  return vendor;
}

const isTaken = async (content: string) => (taken.some((one) => one.content === content) ? true : undefined);

const waiting = async () =>
  (
    await server.database!.db.query<{ n: number }>(
      `select count(*)::int as n from graphile_worker._private_jobs j
       join graphile_worker._private_tasks t on t.id = j.task_id where t.identifier = 'answer-bot-command'`,
    )
  )[0]!.n;

const answers: [string, () => FakeAnswer | Promise<FakeAnswer>][] = [
  ['hang', () => new Promise<never>(() => undefined)],
  ['429', () => ({ status: 429, body: { message: 'Too many requests' } })],
];

test.each(answers)(
  'while 10,000 answers of an account wait (%s), commands of another are answered in 2 s',
  async (how, answer) => {
    answerOf = answer;
    const { account_id } = server.credentials;
    const records = Array.from({ length: WAITING + MORE }, (_, n) =>
      chatRecord(message(`1${n % PERSONS}`, `!full-${how} ${n}`, { platform: 'kick', channel_id: busy }), {
        ...{ account_id, at: new Date().toISOString() },
      }),
    );
    await server.database!.db.query('delete from graphile_worker._private_jobs where locked_at is null');
    await on.records.append(TOPICS.chat_events, records);
    await eventually(async () => ((await waiting()) >= WAITING ? true : undefined), '10,000 waiting answers');

    for (let n = 1; n <= 10; n += 1) {
      const content = `${how} ${n}`;
      await quiet().kickLine(`!quick ${content}`);
      await promised(() => isTaken(content), `the answer ${n}`, WITHIN_MS, probeOf(server));
    }
    expect(await waiting()).toBeGreaterThan(WAITING / 2);
    expect(taken.every(({ channel }) => channel === QUIET)).toBe(true);
  },
  300_000,
);
