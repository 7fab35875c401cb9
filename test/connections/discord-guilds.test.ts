import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';
import { FakeDiscord } from '../vendors/discord-cloud';

const WEB = 'https://app.example';
const BACK = `${WEB}/connections`;
const GUILD = '9001';
const BOT_TOKEN = 'discord-bot-token';
const PATH = `/v1/discord-guilds/${GUILD}`;

let discord: FakeDiscord;
let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  discord = await new FakeDiscord().start();
  discord.bot_tokens.add(BOT_TOKEN);
  discord.rest.channels.set(GUILD, [
    { id: '12', name: 'news', type: 5, position: 2 },
    { id: '11', name: 'general', type: 0, position: 1 },
    { id: '13', name: 'voice', type: 2, position: 0 },
  ]);
  server = await startServer({
    env: {
      LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_DISCORD__CLIENT_ID: '4242',
      LUMIO_DISCORD__CLIENT_SECRET: 'app-secret',
      LUMIO_DISCORD__BOT_TOKEN: BOT_TOKEN,
      LUMIO_DISCORD__API_URL: discord.base_url,
    },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await discord?.close();
});

/** Adds the bot to the server, as somebody does on the page of Discord. */
async function addBot(api: ApiClient): Promise<string> {
  const { body } = await api.send('POST', '/v1/discord-guilds/authorize', { return_to: BACK });
  expect(new URL(body.authorize_url).pathname).toBe('/oauth2/authorize');
  const code = discord.tokens.code(GUILD, ['bot', 'applications.commands']);
  const done = await api.send('POST', '/v1/connections/oauth/discord/exchange', { code, state: body.state });
  expect(done).toMatchObject({ status: 200, body: { kind: 'bot', platform: 'discord' } });
  return done.body.connection_id as string;
}

test('a server is added, configured and shown on both protocols, and loses all with its bot', async () => {
  expect((await owner.get('/v1/discord-guilds')).body.data).toEqual([]);
  expect(await owner.get(PATH)).toMatchObject({ status: 404, body: { message: 'Discord server not found' } });
  const connection_id = await addBot(owner);
  const shown = {
    ...{ guild_id: GUILD, guild_name: `Guild ${GUILD}`, connected_at: expect.any(String) },
    ...{ settings: {}, channels: {}, slash_skipped: expect.any(Array) },
  };
  expect((await owner.get('/v1/discord-guilds')).body.data).toEqual([shown]);
  expect((await owner.get(PATH)).body.data).toEqual(shown);

  const settings = { event_types: ['kick:follower'], live_message: '{{channel}} is live', theme: { dark: true } };
  expect(await owner.send('PATCH', PATH, { settings })).toMatchObject({ status: 200, body: { data: { settings } } });
  for (const [bad, message] of [
    [{ large: 'x'.repeat(16 << 10) }, 'settings is larger than 16 KiB of JSON'],
    [{ event_types: 'all' }, expect.stringContaining('settings.event_types')],
    [{ live_message: 7 }, expect.stringContaining('settings.live_message')],
  ] as const)
    expect(await owner.send('PATCH', PATH, { settings: bad })).toMatchObject({ status: 400, body: { message } });

  expect((await owner.get(`${PATH}/channels`)).body.data).toEqual([
    { id: '11', name: 'general', type: 0 },
    { id: '12', name: 'news', type: 5 },
  ]);
  const put = (feature: string, channel_id: string) => owner.send('PUT', `${PATH}/channels/${feature}`, { channel_id });
  expect(await put('event_feed', '11')).toMatchObject({
    status: 200,
    body: { data: { channels: { event_feed: '11' } } },
  });
  expect(await put('chat_mirror', '13')).toMatchObject({
    status: 400,
    body: { message: 'channel_id must be a text channel of this server' },
  });
  expect(await put('music', '11')).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  const { data } = await owner.gql(`mutation {
    setDiscordChannel(guildId: "${GUILD}", feature: "live_notification", channelId: "12") { channels settings } }`);
  expect(data.setDiscordChannel).toEqual({ settings, channels: { event_feed: '11', live_notification: '12' } });
  const listed = await owner.gql(`{ discordChannels(guildId: "${GUILD}") { id name type } discordGuilds { guildId } }`);
  expect(listed.data).toMatchObject({ discordChannels: [{ id: '11' }, { id: '12' }], discordGuilds: [{}] });

  const remove = () => owner.send('DELETE', `${PATH}/channels/event_feed`, undefined);
  expect([(await remove()).status, (await remove()).status]).toEqual([204, 404]);
  expect((await owner.send('DELETE', `${PATH}/channels/music`, undefined)).status).toBe(400);

  expect((await owner.send('DELETE', `/v1/bot-connections/${connection_id}`, undefined)).status).toBe(204);
  expect((await owner.get(PATH)).status).toBe(404);
  await addBot(owner);
  expect((await owner.get(PATH)).body.data).toMatchObject({ settings: {}, channels: {} });
});

test('strangers reach no server of the account, and an unreachable Discord is no server error', async () => {
  expect((await stranger.get('/v1/discord-guilds')).body.data).toEqual([]);
  for (const [method, path, body] of [
    ['GET', PATH, undefined],
    ['PATCH', PATH, { settings: {} }],
    ['GET', `${PATH}/channels`, undefined],
    ['PUT', `${PATH}/channels/event_feed`, { channel_id: '11' }],
    ['DELETE', `${PATH}/channels/event_feed`, undefined],
    ['DELETE', `${PATH}/channels/music`, undefined],
  ] as const)
    expect([path, (await stranger.send(method, path, body)).status]).toEqual([path, 404]);
  const nobody = new ApiClient(server.base_url, 'nobody');
  expect((await nobody.get(PATH)).status).toBe(401);
  discord.fail({ path: `/api/v10/guilds/${GUILD}/channels`, status: 500 });
  expect((await owner.get(`${PATH}/channels`)).status).toBe(503);
});
