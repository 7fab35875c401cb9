import { SUBSCRIPTIONS } from '../../ingest/twitch/subscriptions';
import { Listener } from '../support/listener';
import { until } from '../support/projections';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';
import { FakeTwitch, TWITCH_CLIENT } from '../vendors/twitch-cloud';

describe('a channel that is connected by a login at Twitch', () => {
  let twitch: FakeTwitch;
  let server: TestServer;
  beforeAll(async () => {
    twitch = await new FakeTwitch().start();
    server = await startServer({
      env: {
        LUMIO_TWITCH__API_URL: twitch.base_url,
        LUMIO_TWITCH__ID_URL: twitch.base_url,
        LUMIO_TWITCH__EVENTSUB_URL: twitch.eventsub_url,
        LUMIO_TWITCH__CLIENT_ID: TWITCH_CLIENT,
        LUMIO_TWITCH__CLIENT_SECRET: 'secret',
        LUMIO_HOSTS__WEB: 'https://app.example',
      },
    });
  });
  afterAll(async () => {
    await server?.dispose();
    await twitch.close();
  });

  test('is heard by the worker, and what it says is on the WebSocket at once', async () => {
    const { account_id, access_token, connections } = server.credentials;
    const { platform_channel_id: channel } = connections.twitch;
    const api = new ApiClient(server.base_url, access_token);
    const asked = { kind: 'channel', return_to: 'https://app.example/x' };
    const { body: begun } = await api.send('POST', '/v1/connections/oauth/twitch/start', asked);
    const { state } = begun as unknown as { state: string };
    const login = { code: twitch.tokens.code(channel), state };
    expect((await api.send('POST', '/v1/connections/oauth/twitch/exchange', login)).status).toBe(200);
    await until(() => twitch.subscriptionsOf(channel).length === SUBSCRIPTIONS.length);

    const channels = [`events:${account_id}`, `chat:${account_id}`] as const;
    const listener = await Listener.to(server.ws_url, access_token, ...channels);
    const broadcaster_user_id = channel;
    const followed_at = new Date().toISOString();
    twitch.notify(channel, 'channel.follow', { user_id: '7', user_name: 'V', broadcaster_user_id, followed_at });
    const message = { text: 'hi', fragments: [] };
    const said = { broadcaster_user_id, chatter_user_id: '7', chatter_user_login: 'v', message_id: 'x', message };
    twitch.notify(channel, 'channel.chat.message', said);
    const follow = await listener.next(({ event_type }) => event_type === 'twitch:follower');
    expect(follow.data).toMatchObject({ account_id, payload: { user_id: '7', followed_at } });
    const chat = await listener.next(({ type }) => type === 'chat:message');
    expect(chat.data).toMatchObject({ username: 'v', message: 'hi', platform: 'twitch' });
    listener.close();
    expect(await server.stop()).toBe(0);
    expect(twitch.sessions.size).toBe(0);
  });
});
