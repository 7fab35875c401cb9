import { readChatRecord } from '../../domain/chat/chat-messages';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { withPictures } from '../../ingest/runtime/parse/chat-pictures';
import { normaliseTwitch } from '../../ingest/twitch/normalise';
import { createChannelEmotes } from '../../services/chat/emotes';
import { twitchBadges } from '../../vendors/twitch/badges';
import { emoteSources } from '../../vendors/emotes/sources';
import { createHttpClients } from '../../vendors/http/client';
import { silentLog } from '../support/log';
import { Client, type ServerMessage } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { channelOf, twitchFrame } from '../support/twitch-frames';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import type { FakeAnswer, FakeCall } from '../vendors/cloud';
import { APP, FakeOAuthCloud } from '../vendors/oauth-cloud';

const WEB = 'https://app.example';
const TROVO_EMOTE = { name: 'firedragon!', url: 'https://img.trovo.live/a.png', webp: '', gifp: '' };

/** The emotes and badges of all providers on one address. */
class FakeEmotes extends FakeOAuthCloud {
  constructor() {
    super();
    this.on('POST /openplatform/getemotes', ({ body, headers }) => {
      const { channel_id } = JSON.parse(body) as { channel_id: string[] };
      if (headers['client-id'] !== APP.client_id || channel_id.length !== 1) return { status: 400, body: {} };
      const channel = [{ channel_id: channel_id[0], emotes: [TROVO_EMOTE] }];
      return { body: { channels: { customizedEmotes: { channel }, eventEmotes: [], globalEmotes: null } } };
    });
    this.on('GET /helix/chat/badges/global', (call) => this.badges(call, 'moderator', ['1', 'global']));
    this.on('GET /helix/chat/badges', (call) =>
      this.badges(call, 'subscriber', ['12', `of-${call.query.get('broadcaster_id')}`]),
    );
    this.on('GET /api/v10/guilds/900/emojis', ({ headers }) => {
      if (headers.authorization !== 'Bot bot-1') return { status: 401, body: {} };
      const emojis = [
        { id: '71', name: 'wave', animated: true, available: true },
        { id: '72', name: 'gone', available: false },
        { id: null, name: '\u{1f389}' },
      ];
      return { body: emojis };
    });
  }

  answers(path: string, body: unknown): void {
    this.on(`GET ${path}`, (): FakeAnswer => ({ body }));
  }

  private badges({ headers }: FakeCall, set_id: string, [id, name]: [string, string]): FakeAnswer {
    if (this.tokens.of(headers.authorization) === null) return { status: 401, body: {} };
    return { body: { data: [{ set_id, versions: [{ id, image_url_2x: `https://static.example/${name}` }] }] } };
  }
}

let cloud: FakeEmotes;
let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
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
  cloud.answers('/youtube/img/emojis/emojis-png-7.json', [
    { emojiId: 'UC/a', shortcuts: [':yougotthis:'], image: { thumbnails: [{ url: 'https://yt3.ggpht.com/a' }] } },
    { emojiId: 'no-name', image: {} },
  ]);
  server = await startServer({
    env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB, LUMIO_DISCORD__BOT_TOKEN: 'bot-1' },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

const ffz = {
  provider: 'ffz',
  emotes: [{ id: '9', name: 'ZreknarF', url: 'https://cdn.frankerfacez.com/9/1', animated: false }],
};

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
    ffz,
  ];
  const badges = [
    { kind: 'subscriber', id: '12', image_url: 'https://static.example/of-900' },
    { kind: 'moderator', id: '1', image_url: 'https://static.example/global' },
  ];
  const [first, other] = await Promise.all([owner.get('/v1/emotes/twitch/900'), owner.get('/v1/emotes/twitch/900')]);
  expect(first).toMatchObject({ status: 200, body: { data: { sets, badges } } });
  expect(other.body.data).toEqual({ sets, badges });
  const { data } = await owner.gql(
    `{ channelEmotes(platform: "twitch", channelId: "900") {
      sets { provider emotes { id name url animated } } badges { kind id imageUrl }
    } }`,
  );
  expect(data.channelEmotes).toEqual({
    sets,
    badges: badges.map(({ image_url: imageUrl, ...badge }) => ({ ...badge, imageUrl })),
  });
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

test('YouTube and Trovo have emotes of their own', async () => {
  expect((await owner.get('/v1/emotes/youtube/UC1')).body.data.sets).toEqual([
    {
      provider: 'youtube',
      emotes: [{ id: 'UC/a', name: ':yougotthis:', url: 'https://yt3.ggpht.com/a', animated: false }],
    },
    ffz,
  ]);
  expect((await owner.get('/v1/emotes/trovo/12')).body.data.sets).toEqual([
    {
      provider: 'trovo',
      emotes: [{ id: 'firedragon!', name: 'firedragon!', url: 'https://img.trovo.live/a.png', animated: false }],
    },
    ffz,
  ]);
});

test('emojis of a Discord server are for the account that it is linked to', async () => {
  const path = '/v1/emotes/discord/900';
  expect(await owner.get(path)).toMatchObject({ status: 404, body: { error: 'NOT_FOUND' } });
  const oauth = '/v1/connections/oauth/discord';
  const begun = await owner.send('POST', `${oauth}/start`, { kind: 'bot', return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, '900');
  expect((await owner.send('POST', `${oauth}/exchange`, { code, state })).status).toBe(200);
  expect((await owner.get(path)).body.data.sets).toEqual([
    {
      provider: 'discord',
      emotes: [{ id: '71', name: 'wave', url: 'https://cdn.discordapp.com/emojis/71.gif', animated: true }],
    },
  ]);
  expect((await stranger.get(path)).status).toBe(404);
  expect((await new ApiClient(server.base_url, server.credentials.system_key).get(path)).status).toBe(404);
});

test('a message has the emotes that are in memory when it arrives', async () => {
  const channel = server.credentials.connections.kick.platform_channel_id;
  cloud.answers(`/v3/users/kick/${channel}`, seventv([emote('k', 'KEKW')]));
  expect((await owner.get(`/v1/emotes/kick/${channel}`)).status).toBe(200);
  const person = (user_id: number) => ({ user_id, username: `n${user_id}`, channel_slug: `n${user_id}` });
  const content = 'so KEKW  KEKWait [emote:7:hi] KEKW!';
  const of = { message_id: 'emotes-1', broadcaster: person(Number(channel)), sender: person(5), content, emotes: null };
  const body = Buffer.from(JSON.stringify({ ...of, created_at: new Date().toISOString() }));
  expect((await new VendorCloud(server.base_url, server.credentials).kick('chat.message.sent', body)).status).toBe(200);
  const row = await eventually(
    async () =>
      (await owner.get('/v1/chat/messages')).body.data.find((one: any) => one.platform_message_id === 'emotes-1'),
    'the message',
  );
  expect(row.message).toBe('so KEKW  KEKWait hi KEKW!');
  expect(row.parts).toEqual([
    { type: 'text', text: 'so ' },
    {
      ...{ type: 'emote', text: 'KEKW', id: 'k', provider: '7tv', animated: true },
      url: 'https://cdn.7tv.app/emote/a/2x.webp',
    },
    { type: 'text', text: '  KEKWait ' },
    expect.objectContaining({ type: 'emote', provider: 'kick', id: '7' }),
    { type: 'text', text: ' KEKW!' },
  ]);
  expect(row.emotes).toHaveLength(2);
});

test('a record waits for no vendor, and later ones have what was fetched meanwhile', async () => {
  const http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
  const at = { api_url: cloud.base_url, id_url: cloud.base_url };
  const urls = { seventv_url: cloud.base_url, bttv_url: cloud.base_url, ffz_url: cloud.base_url };
  const emotes = createChannelEmotes({
    emotes: emoteSources(http, urls),
    badges: [twitchBadges(http, { ...at, app: APP })],
    log: silentLog,
  });
  const frame = JSON.parse(twitchFrame('channel.chat.message.v1.body.json'));
  const fragment = { type: 'text', text: 'Hiya Pog' };
  Object.assign(frame.payload.event, {
    message: { text: fragment.text, fragments: [fragment] },
    badges: [{ set_id: 'subscriber', id: '12', info: '14' }],
  });
  const text = JSON.stringify(frame);
  const connection = { connection_id: 'c', account_id: 'a', channel_id: channelOf(text) };
  cloud.answers(`/v3/users/twitch/${connection.channel_id}`, seventv([emote('p', 'Pog')]));
  const outcome = normaliseTwitch({ text, received_at: Date.now(), age_ms: 0 }, connection);
  const [record] = outcome.kind === 'ok' ? outcome.records : [];
  const complete = () => readChatRecord(withPictures(record!, emotes));
  expect(withPictures(record!, emotes)).toBe(record);
  const shown = await eventually(async () => {
    const read = complete();
    return read?.kind === 'message' && read.badges[0]!.image_url !== null && read.parts.length > 1 ? read : undefined;
  }, 'the pictures');
  const image_url = `https://static.example/of-${connection.channel_id}`;
  expect(shown).toMatchObject({
    badges: [{ kind: 'subscriber', id: '12', info: '14', image_url }],
    parts: [
      { type: 'text', text: 'Hiya ' },
      { type: 'emote', text: 'Pog', provider: '7tv' },
    ],
    raw: readChatRecord(record!)!.raw,
  });
  await http.close();
});

test('a provider that fails or knows no channel is left out, bad ids are 400, nobody is 401', async () => {
  cloud.fail({ path: '/v3/users/kick/1', times: 100 });
  expect((await owner.get('/v1/emotes/kick/1')).body.data).toEqual({ sets: [ffz], badges: [] });
  const failed = cloud.asked('/v3/users/kick/1');
  await owner.get('/v1/emotes/kick/1');
  // A vendor that failed is left alone for a while.
  expect(cloud.asked('/v3/users/kick/1')).toBe(failed);
  for (const path of ['twitch/a%20b', `twitch/${'x'.repeat(65)}`, 'none/1'])
    expect((await owner.get(`/v1/emotes/${path}`)).status).toBe(400);
  expect((await new ApiClient(server.base_url, '').get('/v1/emotes/twitch/900')).status).toBe(401);
});

test('a page has the emotes of the account: at once those in memory, else in a message that follows', async () => {
  const { key, access_token } = (await owner.send('POST', '/v1/overlays', {})).body.data;
  const updates = async () => {
    const page = await Client.open(server.ws_url, access_token);
    expect((await page.subscribe(`overlay:${key}`)).type).toBe('subscribed');
    const with_emotes = ({ data }: ServerMessage) => ((data?.emotes as object[] | undefined) ?? []).length > 0;
    const found = await page.next(with_emotes, 'emotes');
    page.end();
    return [page.messages.find(({ event_type }) => event_type === 'overlay:update')!, found].map(({ data }) => data!);
  };
  const [first, emotes] = await updates();
  expect(first).toMatchObject({ emotes: [], layers: [] });
  const { platform_channel_id: channel_id } = server.credentials.connections.kick;
  const { sets, badges } = (await owner.get(`/v1/emotes/kick/${channel_id}`)).body.data;
  expect(emotes!.emotes).toContainEqual({ platform: 'kick', channel_id, sets, badges });
  const [again] = await updates();
  expect(again).toMatchObject({ emotes: emotes!.emotes, layers: [] });
});
