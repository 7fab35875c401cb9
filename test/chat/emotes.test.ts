import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';
import { type FakeAnswer, FakeCloud } from '../vendors/cloud';

/** The emotes of three providers on one address. */
class FakeEmotes extends FakeCloud {
  answers(path: string, body: unknown): void {
    this.on(`GET ${path}`, (): FakeAnswer => ({ body }));
  }
}

let cloud: FakeEmotes;
let server: TestServer;
let owner: ApiClient;
const seventv = (emotes: object[]) => ({ emote_set: { emotes } });
const emote = (id: string, name: string, url = '//cdn.7tv.app/emote/a') => ({
  ...{ id, name },
  data: { animated: true, host: { url } },
});
beforeAll(async () => {
  cloud = await new FakeEmotes().start();
  cloud.answers(
    '/v3/users/twitch/900',
    seventv([emote('a', 'Hi'), emote('b c', 'Bad'), emote('c', 'two words'), emote('d', 'x', 'http://plain')]),
  );
  cloud.answers('/3/cached/users/twitch/900', {
    channelEmotes: [{ id: 'f', code: 'Wow', animated: false }],
    sharedEmotes: [],
  });
  cloud.answers('/v1/set/global', {
    default_sets: [3],
    sets: {
      3: { emoticons: [{ id: 9, name: 'ZreknarF', urls: { 1: 'https://cdn.frankerfacez.com/9/1' } }] },
      4: { emoticons: [{ id: 8, name: 'Hidden', urls: {} }] },
    },
  });
  const url = cloud.base_url;
  server = await startServer({
    env: {
      LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
      LUMIO_EMOTES__SEVENTV_URL: url,
      LUMIO_EMOTES__BTTV_URL: url,
      LUMIO_EMOTES__FFZ_URL: url,
    },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

test('the emotes of a channel come by provider, fetched once, without unusable ones', async () => {
  const sets = [
    {
      provider: '7tv',
      emotes: [
        { id: 'a', name: 'Hi', url: 'https://cdn.7tv.app/emote/a/2x.webp', animated: true },
        { id: 'd', name: 'x', url: null, animated: true },
      ],
    },
    {
      provider: 'bttv',
      emotes: [{ id: 'f', name: 'Wow', url: 'https://cdn.betterttv.net/emote/f/2x', animated: false }],
    },
    {
      provider: 'ffz',
      emotes: [{ id: '9', name: 'ZreknarF', url: 'https://cdn.frankerfacez.com/9/1', animated: false }],
    },
  ];
  const [first, other] = await Promise.all([owner.get('/v1/emotes/twitch/900'), owner.get('/v1/emotes/twitch/900')]);
  expect(first).toMatchObject({ status: 200, body: { data: { sets } } });
  expect(other.body.data).toEqual({ sets });
  const { data } = await owner.gql(
    '{ channelEmotes(platform: "twitch", channelId: "900") { sets { provider emotes { id name url animated } } } }',
  );
  expect(data.channelEmotes).toEqual({ sets });
  expect(cloud.asked('/v3/users/twitch/900')).toBe(1);
  expect(cloud.asked('/v1/set/global')).toBe(1);
});

test('an ETag answers 304 to the caller that holds the answer', async () => {
  const ask = (more: Record<string, string>) => {
    const headers = { authorization: `Bearer ${server.credentials.access_token}`, ...more };
    return fetch(`${server.base_url}/v1/emotes/twitch/900`, { headers });
  };
  const held = await ask({ 'if-none-match': (await ask({})).headers.get('etag')! });
  expect([held.status, await held.text()]).toEqual([304, '']);
  expect(held.headers.get('cache-control')).toBe('private, max-age=60');
});

test('a provider that fails or knows no channel is left out, bad ids are 400, nobody is 401', async () => {
  expect((await owner.get('/v1/emotes/kick/1')).body.data.sets).toMatchObject([{ provider: 'ffz' }]);
  for (const path of ['twitch/a%20b', `twitch/${'x'.repeat(65)}`, 'none/1'])
    expect((await owner.get(`/v1/emotes/${path}`)).status).toBe(400);
  expect((await new ApiClient(server.base_url, '').get('/v1/emotes/twitch/900')).status).toBe(401);
});
