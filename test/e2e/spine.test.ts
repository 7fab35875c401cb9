import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';

/**
 * One path through every room: a signed webhook becomes a stored event, an answer of both query APIs and a live
 * message.
 */
describe('a webhook, all the way', () => {
  let server: TestServer;
  let vendors: VendorCloud;
  let api: ApiClient;
  let socket: Client;
  let channel: string;

  beforeAll(async () => {
    server = await startServer();
    vendors = new VendorCloud(server.base_url, server.credentials);
    api = new ApiClient(server.base_url, server.credentials.access_token);
    channel = `events:${server.credentials.account_id}`;
    socket = await Client.open(server.ws_url, server.credentials.access_token);
    expect((await socket.subscribe(channel)).type).toBe('subscribed');
  });
  afterAll(async () => {
    socket?.end();
    await server?.dispose();
  });

  const live = (event_type: string, from: number) =>
    socket.next((message) => message.event_type === event_type, event_type, from);

  test.each([
    ['kick:follower', () => vendors.kickFollow(987654321), 'kick'],
    [
      'trovo:spell',
      () => vendors.trovo({ type: 'channel.spell', message_id: 'm-1', uid: '42', gift: 'Winner' }),
      'trovo',
    ],
    ['youtube:subscribe', () => vendors.youtube('dQw4w9WgXcQ', 'Tom &amp; Jerry'), 'youtube'],
    [
      'shopify:order',
      () => vendors.shopify('orders/create', Buffer.from('{"id":820982911946154508,"name":"#1001"}')),
      'shopify',
    ],
  ])('%s arrives on the socket, in REST and in GraphQL', async (type, post, platform) => {
    const from = socket.messages.length;
    expect(await post()).toMatchObject({ status: 200 });
    const message = await live(type, from);
    expect(message).toMatchObject({ type: 'event', channel, event_type: type, data: { type, platform } });

    const id = message.data!.id as string;
    const one = await api.get(`/v1/events/${id}`);
    expect(one.status).toBe(200);
    expect(one.body.data).toMatchObject({ id, type, platform, account_id: server.credentials.account_id });
    const page = await api.get(`/v1/events?types=${type}`);
    expect(page.body).toMatchObject({ _meta: { total: 1, page: 1, limit: 25, pages: 1 }, data: [{ id, type }] });
    const { data } = await api.gql(
      `query($t: [String!]) { events(filter: {types: $t}) { total items { id eventType } } }`,
      {
        t: [type],
      },
    );
    expect(data.events).toEqual({ total: 1, items: [{ id, eventType: type }] });
  });

  test('a chat message arrives on the socket, and in the history of both query APIs', async () => {
    expect((await socket.subscribe(`chat:${server.credentials.account_id}`)).type).toBe('subscribed');
    const broadcaster = { user_id: Number(server.credentials.connections.kick.platform_channel_id), username: 'demo' };
    const sender = { user_id: 77, username: 'Viewer_77', is_anonymous: false, channel_slug: 'viewer-77' };
    const said = { message_id: 'kick-1', broadcaster, sender, content: 'Hällo from https://example.com', emotes: null };
    const from = socket.messages.length;
    expect(await vendors.kick('chat.message.sent', Buffer.from(JSON.stringify(said)))).toMatchObject({ status: 200 });
    const live = await socket.next((message) => message.type === 'chat:message', 'the chat message', from);
    expect(live.data).toMatchObject({ message: said.content, platform: 'kick', is_first_message: true });

    const found = await api.get('/v1/chat/messages?search=H%C3%84LLO%20has:link&platform=kick');
    expect(found.body.data).toMatchObject([
      { id: live.data!.id, platform_message_id: 'kick-1', is_first_message: true, deleted_at: null },
    ]);
    expect(found.body._meta).toMatchObject({ limit: 25, next_cursor: null, prev_cursor: expect.any(String) });
    const newer = await api.get(`/v1/chat/messages?cursor=${found.body._meta.prev_cursor}`);
    expect(newer.body.data).toEqual([]);
    expect((await api.get('/v1/chat/messages/count?user_id=77')).body.data).toEqual({ count: 1, partial: false });
    expect((await api.get('/v1/chat/moderation-log')).body.data).toEqual([]);
    expect((await api.get('/v1/chat/messages?platform=icq')).status).toBe(400);
    const { data } = await api.gql(
      `{ chatMessages(filter: { userId: "77", deleted: false, limit: 5 }) {
           items { id platformMessageId username message isFirstMessage parts } nextCursor prevCursor }
         chatMessageCount(filter: { search: "from:viewer" }) { count partial }
         chatModerationLog { items { action } } }`,
    );
    expect(data).toMatchObject({
      chatMessages: {
        items: [{ id: live.data!.id, platformMessageId: 'kick-1', message: said.content }],
        nextCursor: null,
      },
      chatMessageCount: { count: 1, partial: false },
      chatModerationLog: { items: [] },
    });
  });

  test('numbers beyond 2^53 keep their digits on every way out', async () => {
    const { text } = await api.get('/v1/events?types=shopify:order');
    expect(text).toContain('"id":820982911946154508');
    const response = await fetch(`${server.base_url}/v1/gql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.credentials.access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ events(filter: {types: ["shopify:order"]}) { items { raw } } }' }),
    });
    expect(await response.text()).toContain('"id":820982911946154508');
  });

  test('a delivery that comes again has one effect', async () => {
    for (let delivery = 0; delivery < 3; delivery += 1) {
      expect((await vendors.kickFollow(5, 'again')).status).toBe(200);
    }
    expect((await vendors.kickFollow(6)).status).toBe(200);
    const followers = await eventually(async () => {
      const rows = await api.allEvents('&types=kick:follower&user_id=6');
      return rows.length > 0 ? api.allEvents('&types=kick:follower&user_id=5') : undefined;
    }, 'the next follower');
    expect(followers).toHaveLength(1);
  });

  test('another tenant sees none of it', async () => {
    const other = new ApiClient(server.base_url, server.credentials.other.access_token);
    expect((await other.get('/v1/events')).body._meta.total).toBe(0);
    const [mine] = await api.allEvents();
    expect(await other.get(`/v1/events/${mine.id}`)).toMatchObject({ status: 404, body: { error: 'NOT_FOUND' } });
    expect((await other.gql(`{ event(id: "${mine.id}") { id } }`)).errors[0].extensions.code).toBe('NOT_FOUND');
    const stranger = await Client.open(server.ws_url, server.credentials.other.access_token);
    expect(await stranger.subscribe(channel)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
    stranger.end();
  });

  test('emit stores and broadcasts; test only broadcasts', async () => {
    const from = socket.messages.length;
    const emitted = await api.send('POST', '/v1/events/emit', {
      event_type: 'twitch:cheer',
      platform: 'twitch',
      raw: { bits: 100 },
    });
    expect(emitted).toMatchObject({ status: 200, body: { success: true, event: { type: 'twitch:cheer' } } });
    expect((await live('twitch:cheer', from)).data!.payload).toEqual({ bits: 100 });
    expect((await api.get(`/v1/events/${emitted.body.event.id}`)).status).toBe(200);

    expect(await api.send('POST', '/v1/events/test', { event_type: 'twitch:raid', raw: { viewers: 7 } })).toMatchObject(
      { status: 200 },
    );
    expect((await live('twitch:raid', from)).data!.payload).toEqual({ viewers: 7 });
    expect((await api.get('/v1/events?types=twitch:raid')).body._meta.total).toBe(0);
  });

  test('health and metrics tell of it', async () => {
    const health = await api.get('/v1/health');
    expect(health.body.data).toMatchObject({ status: 'healthy', websocket: { sessions: 1, channels: 2 } });
    const metrics = await (await fetch(server.metrics_url)).text();
    const line = (name: string, labels: string, value: RegExp) =>
      metrics
        .split('\n')
        .some((text) => text.startsWith(`${name}{`) && text.includes(labels) && value.test(text.split('} ')[1] ?? ''));
    const missing = [
      ['http_requests_total', 'route="/v1/webhooks/kick"', /^[1-9]/],
      ['http_request_duration_seconds_bucket', 'le="1"', /./],
      ['process_cpu_seconds_total', 'service="lumio",env="development"', /./],
      ['lumio_build_info', `version="${socket.messages[0]!.server_version}"`, /^1$/],
      ['lumio_uptime_seconds', '', /^[0-9]/],
      ['lumio_websocket_sessions', 'env="development"', /^1$/],
      ['lumio_websocket_channels', 'env="development"', /^2$/],
      ['lumio_db_pool_connections', 'pool="main"', /^[1-9]/],
      ['lumio_db_pool_idle', 'pool="main"', /./],
    ].filter(([name, labels, value]) => !line(name as string, labels as string, value as RegExp));
    expect(missing).toEqual([]);
  });

  test('killed and started again, the server has lost nothing', async () => {
    const last = socket.messages.findLast((message) => message.channel === channel && message.id !== undefined)!;
    expect((await vendors.kickFollow(9, 'before the kill')).status).toBe(200);
    await server.kill();
    await socket.closed();
    server = await server.restart();

    api = new ApiClient(server.base_url, server.credentials.access_token);
    const [stored] = await eventually(async () => {
      const rows = await api.allEvents('&types=kick:follower&user_id=9');
      return rows.length > 0 ? rows : undefined;
    }, 'the event that was acknowledged before the kill');
    const { data } = await api.gql(`{ event(id: "${stored.id}") { id eventType } }`);
    expect(data.event).toEqual({ id: stored.id, eventType: 'kick:follower' });
    socket = await Client.open(server.ws_url, server.credentials.access_token);
    expect(await socket.subscribe(channel, last.id)).toMatchObject({ type: 'subscribed', recovered: true });
    expect((await live('kick:follower', 0)).data).toMatchObject({ id: stored.id });
    expect((await api.get('/v1/events?types=shopify:order')).body._meta.total).toBe(1);
  });
});
