import { createPrivateKey, type KeyObject } from 'node:crypto';
import { runLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';
import { kickHeaders } from '../../support/webhooks';

const BEGAN = Math.floor((Date.now() - 7_200_000) / 60_000) * 60_000;
const at = (minutes: number, seconds = 0) => new Date(BEGAN + minutes * 60_000 + seconds * 1000).toISOString();

let server: TestServer;
let owner: ApiClient;
let key: KeyObject;
let broadcaster: { user_id: number; username: string; channel_slug: string };
beforeAll(async () => {
  server = await startServer({ env: { LUMIO_HISTORY__SESSION_GRACE: '2m', LUMIO_HISTORY__COUNT_EVERY: '1s' } });
  const { access_token, connections, webhook_signing } = server.credentials;
  owner = new ApiClient(server.base_url, access_token);
  key = createPrivateKey(webhook_signing.kick_private_key);
  broadcaster = { user_id: Number(connections.kick.platform_channel_id), username: 'us', channel_slug: 'us' };
});
afterAll(() => server?.dispose());

const person = (user_id: number) => ({ user_id, username: `viewer_${user_id}`, channel_slug: `viewer-${user_id}` });
interface Delivery {
  type: string;
  id: string;
  body: object;
}
const turn = (is_live: boolean): Delivery => ({
  type: 'livestream.status.updated',
  id: `turn-${is_live}`,
  body: { broadcaster, is_live, title: 'Boss fight', started_at: at(0), ended_at: is_live ? null : at(60) },
});
const said = (
  n: number,
  author: number,
  minute: number,
  content = 'hello',
  emotes: object[] | null = null,
): Delivery => ({
  type: 'chat.message.sent',
  id: `message-${n}`,
  body: { message_id: `message-${n}`, broadcaster, sender: person(author), content, emotes, created_at: at(minute) },
});
const follower = (n: number, minute: number): Delivery => ({
  type: 'channel.followed',
  id: `follow-${n}`,
  body: { broadcaster, follower: person(n), created_at: at(minute) },
});

/** A broadcast of an hour: 30 messages of four people in it and two outside, three followers and two gifts. */
const deliveries = (): Delivery[] => [
  turn(true),
  turn(false),
  ...Array.from({ length: 29 }, (_, n) => said(n, 1 + (n % 4), 1 + 2 * n)),
  said(40, 1, 59, '[emote:1:A] [emote:1:A]', [
    {
      emote_id: '1',
      positions: [
        { s: 0, e: 10 },
        { s: 12, e: 22 },
      ],
    },
  ]),
  said(41, 9, -1),
  said(42, 9, 60),
  ...[0, 30, 59].map((minute, n) => follower(100 + n, minute)),
  follower(200, 61),
  ...[1, 3].map((many): Delivery => ({
    type: 'channel.subscription.gifts',
    id: `gift-${many}`,
    body: {
      broadcaster,
      gifter: person(1),
      giftees: Array.from({ length: many }, (_, n) => person(300 + 10 * many + n)),
      created_at: at(10),
      expires_at: at(90),
    },
  })),
];

/** Numbers from a seed, so that a failed order can be repeated. */
function shuffled<Item>(items: readonly Item[], seed: number): Item[] {
  let state = seed;
  const next = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  return items
    .map((item) => ({ item, order: next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}

async function deliver({ type, id, body }: Delivery): Promise<void> {
  const bytes = Buffer.from(JSON.stringify(body));
  const headers = kickHeaders(bytes, type, id, new Date().toISOString(), key);
  const answer = await fetch(`${server.base_url}/v1/webhooks/kick`, { method: 'POST', headers, body: bytes });
  expect(answer.status).toBe(200);
}

const FIGURES = {
  status: 'finalized',
  total_messages: 30,
  unique_chatters: 4,
  emote_count: 2,
  new_followers: 3,
  gifted_subs: 4,
  duration_secs: 3600,
};

const session = () =>
  eventually(async () => {
    const [found, ...more] = (await owner.get('/v1/history')).body.data as Record<string, unknown>[];
    const is_whole = Object.entries(FIGURES).every(([name, value]) => found?.[name] === value);
    return is_whole && more.length === 0 ? found : undefined;
  }, 'the figures of the session');

test('shuffled, repeated webhooks give exact figures, also after a rebuild of all read models', async () => {
  for (const one of shuffled([...deliveries(), ...deliveries()], 7)) await deliver(one);
  const { id } = (await session())!;
  const query = `{ channelHistoryReport(id: "${id}") {
    status totalMessages uniqueChatters emoteCount newFollowers giftedSubs durationSecs
    topChatters { messageCount } streams { platform totalMessages } } }`;
  const expected = {
    ...{ status: 'finalized', totalMessages: 30, uniqueChatters: 4, emoteCount: 2, newFollowers: 3, giftedSubs: 4 },
    ...{ durationSecs: 3600, streams: [{ platform: 'kick', totalMessages: 30 }] },
    topChatters: [9, 7, 7, 7].map((messageCount) => ({ messageCount })),
  };
  expect((await owner.gql(query)).data.channelHistoryReport).toEqual(expected);

  const rebuilt = await runLumio(['rebuild', '--all', '--quiet'], server.env);
  expect(rebuilt.stderr).toBe('');
  expect(rebuilt.code).toBe(0);
  // A late message is counted with the rebuilt rows, next to all that was there.
  await deliver(said(50, 2, 20));
  const after = await eventually(async () => {
    const { data } = (await owner.get(`/v1/history/reports/${id}`)).body;
    return data?.total_messages === 31 ? data : undefined;
  }, 'the late message');
  expect(after).toMatchObject({ ...FIGURES, total_messages: 31 });
});
