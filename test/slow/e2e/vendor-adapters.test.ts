import { Listener } from '../../support/listener';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';
import { fixture } from '../../support/webhooks';
import type { FakeTokens } from '../../vendors/cloud-tokens';
import { FakeDiscord } from '../../vendors/discord-cloud';
import { FakeSpotify } from '../../vendors/spotify-cloud';
import { FakeStreamElements } from '../../vendors/streamelements-cloud';

const WEB = 'https://app.example';
const TIPS = { token: 'header.payload.signature', channel: '5ad23dcc18fff500d78c5348' };
const GUILD = '1132079436691415100';
const track = JSON.parse(fixture('spotify', 'player.playback_state.track.json').toString());
const named = (id: string) => ({ ...track, item: { ...track.item, id, uri: `spotify:track:${id}`, name: id } });

const tips = new FakeStreamElements();
const discord = new FakeDiscord();
const spotify = new FakeSpotify();
let server: TestServer;
let api: ApiClient;
beforeAll(async () => {
  for (const vendor of [tips, discord, spotify]) await vendor.start();
  tips.channels.set(TIPS.token, TIPS.channel);
  discord.bot_tokens.add('bot-token');
  const app = (name: string) => [
    [`LUMIO_${name}__CLIENT_ID`, 'lumio-app'],
    [`LUMIO_${name}__CLIENT_SECRET`, 'app-secret'],
  ];
  server = await startServer({
    env: {
      LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_STREAMELEMENTS__API_URL: tips.base_url,
      LUMIO_STREAMELEMENTS__ASTRO_URL: tips.astro_url,
      LUMIO_DISCORD__API_URL: discord.base_url,
      LUMIO_DISCORD__BOT_TOKEN: 'bot-token',
      LUMIO_SPOTIFY__API_URL: spotify.base_url,
      LUMIO_SPOTIFY__ID_URL: spotify.base_url,
      ...Object.fromEntries([...app('DISCORD'), ...app('SPOTIFY')]),
    },
  });
  api = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  for (const vendor of [tips, discord, spotify]) await vendor.close();
});

/** The whole way through the vendor's login. */
async function connect(platform: string, kind: string, owner: string, tokens: FakeTokens): Promise<void> {
  const begun = await api.send('POST', `/v1/connections/oauth/${platform}/start`, { kind, return_to: `${WEB}/` });
  expect(begun).toMatchObject({ status: 200 });
  const state = new URL(begun.body.authorize_url).searchParams.get('state');
  const code = tokens.code(owner);
  expect(await api.send('POST', `/v1/connections/oauth/${platform}/exchange`, { code, state })).toMatchObject({
    status: 200,
  });
}
const stored = (type: string, count: number) =>
  eventually(async () => {
    const events = await api.allEvents(`&types=${type}`);
    expect(events.length).toBeLessThanOrEqual(count);
    return events.length === count ? events : undefined;
  }, `${count} of ${type}`);

test('what is said is in the log and on the channels once, also what is said while the process is dead', async () => {
  const saved = await api.send('POST', '/v1/se-tokens', { platform: 'twitch', token: TIPS.token, label: 'tips' });
  expect(saved.status).toBe(201);
  await connect('discord', 'bot', GUILD, discord.tokens);
  const { account_id, access_token } = server.credentials.other;
  // Players are looked at while a channel is live.
  await server.database!.db.query(
    `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, updated_at)
     values ($1, 'twitch', 'b-1', 'c-1', true, clock_timestamp())`,
    [account_id],
  );
  spotify.players.set('wizzler', named('first'));
  await connect('spotify', 'channel', 'wizzler', spotify.tokens);

  const channels = [`events:${account_id}`, `spotify:${account_id}`] as const;
  const listener = await Listener.to(server.ws_url, access_token, ...channels);

  await eventually(async () => tips.listening(TIPS.channel)[0], 'who listens to tips');
  tips.tip(TIPS.channel);
  await eventually(async () => (discord.connected === 1 ? true : undefined), 'the gateway');
  discord.say('GUILD_MEMBER_REMOVE', { guild_id: GUILD, user: { id: '1', username: 'ada' } });
  await eventually(async () => (spotify.asked('/v1/me/player') > 0 ? true : undefined), 'the first look');
  spotify.players.set('wizzler', named('second'));

  const [tip] = await stored('streamelements:tip', 1);
  expect(JSON.stringify(tip)).not.toContain('tipper@example.com');
  await stored('discord:member_leave', 1);
  await stored('spotify:track', 1);
  const told_tip = await listener.next(({ event_type }) => event_type === 'streamelements:tip');
  expect(told_tip).toMatchObject({ type: 'event' });
  const told_track = ({ type, data }: any) => type === 'spotify:now-playing' && data.item.name === 'second';
  expect(await listener.next(told_track)).toMatchObject({ channel: `spotify:${account_id}` });
  listener.close();

  await server.kill();
  const missed = tips.tip(TIPS.channel);
  discord.say('GUILD_MEMBER_REMOVE', { guild_id: GUILD, user: { id: '2', username: 'alan' } });
  spotify.players.set('wizzler', named('third'));
  server = await server.restart();
  api = new ApiClient(server.base_url, server.credentials.other.access_token);
  const [newest] = await stored('streamelements:tip', 2);
  expect(newest.external_id).toBe(`streamelements:${missed._id}`);
  await stored('discord:member_leave', 2);
  await stored('spotify:track', 2);
  const late = await Listener.to(server.ws_url, server.credentials.other.access_token, `spotify:${account_id}`);
  expect(await late.next(({ type }) => type === 'spotify:now-playing')).toMatchObject({
    data: { item: { name: 'third' } },
  });
  late.close();
  const links = await server.database!.db.query('select vendor, status, missed_detail from adapter_links order by 1');
  expect(links.map(({ vendor, status, missed_detail }) => [vendor, status, missed_detail])).toEqual(
    ['discord', 'spotify', 'streamelements'].map((vendor) => [vendor, 'connected', null]),
  );
});

test('a token that the vendor takes no more flags what it was for, and another one mends it', async () => {
  tips.channels.delete(TIPS.token);
  tips.cutAll();
  const refused = async () => {
    const { body } = await api.get('/v1/se-tokens');
    return body.data[0].refused;
  };
  await eventually(async () => ((await refused()) ? true : undefined), 'the refusal');
  tips.channels.set('an.other.token', TIPS.channel);
  await api.send('POST', '/v1/se-tokens', { platform: 'twitch', token: 'an.other.token', label: 'tips' });
  await eventually(async () => tips.listening(TIPS.channel)[0], 'who listens to tips');
  expect(await refused()).toBe(false);
});
