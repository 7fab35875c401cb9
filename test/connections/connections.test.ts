import { createPrivateKey } from 'node:crypto';
import { v7 } from 'uuid';
import { sayReconnect } from '../../services/connections/connection-flags';
import { actAsService } from '../../app/service-calls';
import { accountAppsStream } from '../../domain/connections/account-apps';
import { accountStream } from '../../domain/accounts/accounts';
import { connectionReservations, guildStream } from '../../domain/connections/connection-reservations';
import { connections, connectionsStream } from '../../domain/connections/connections';
import { seTokensStream } from '../../domain/connections/se-tokens';
import { user, userStream } from '../../domain/identity/users';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { APP, FakeOAuthCloud } from '../vendors/oauth-cloud';
import { kickHeaders } from '../support/webhooks';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

const WEB = 'https://app.example';
const BACK = `${WEB}/connections?tab=channels`;

let cloud: FakeOAuthCloud;
let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  cloud = await new FakeOAuthCloud().start();
  server = await startServer({
    env: {
      ...cloud.env(),
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true',
      LUMIO_LOG_LEVEL: 'trace',
    },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

const SECRET = /app-secret|oauth-[0-9a-f]{8}|own-secret|tip-token/;
/** What the server logged, looked at after each test: its output is kept in part. */
const logged = { lines: 0, secrets: [] as string[] };
afterEach(() => {
  const lines = server.output().split('\n');
  logged.lines = Math.max(logged.lines, lines.length);
  logged.secrets.push(...lines.filter((line) => SECRET.test(line)));
});

const start = (api: ApiClient, platform: string, kind = 'channel', return_to = BACK) =>
  api.send('POST', `/v1/connections/oauth/${platform}/start`, { kind, return_to });
const exchange = (api: ApiClient, platform: string, body: object, key?: string) =>
  api.send('POST', `/v1/connections/oauth/${platform}/exchange`, body, key ? { 'idempotency-key': key } : {});

/** The whole way: begin, log in at the vendor, come back. */
async function connect(api: ApiClient, platform: string, vendor_id: string, kind = 'channel') {
  const begun = await start(api, platform, kind);
  if (begun.status !== 200) return begun;
  const { code, state } = cloud.login(begun.body.authorize_url, vendor_id);
  return exchange(api, platform, { code, state });
}
const listed = async (api: ApiClient, path: string) => (await api.get(path)).body.data as Record<string, unknown>[];
const one = async (api: ApiClient, path: string, platform: string) =>
  (await listed(api, path)).find((item) => item['platform'] === platform);

test('a channel is connected by the login of its platform, shown on both protocols, and taken off again', async () => {
  const begun = await start(stranger, 'twitch');
  expect(begun).toMatchObject({ status: 200, body: { state: expect.any(String) } });
  const page = new URL(begun.body.authorize_url);
  expect(page.pathname).toBe('/oauth2/authorize');
  expect(page.searchParams.get('scope')!.split(' ')).toHaveLength(28);
  const { code, state, redirect_uri } = cloud.login(begun.body.authorize_url, '4711');
  expect(redirect_uri).toBe(`${WEB}/connections/twitch/callback`);
  const done = await exchange(stranger, 'twitch', { code, state });
  expect(done).toMatchObject({
    status: 200,
    body: { kind: 'channel', platform: 'twitch', return_to: BACK, reconnected: false },
  });
  const id = done.body.connection_id;

  const shown = await one(stranger, '/v1/connections/channel', 'twitch');
  expect(shown).toMatchObject({
    ...{ id, platform_channel_id: '4711', username: 'login_4711', display_name: 'Name 4711' },
    ...{ reconnect_required: false, bot_enabled: true },
  });
  expect(JSON.stringify(shown)).not.toContain('oauth-');
  expect(await one(stranger, '/v1/connections/status', 'twitch')).toMatchObject({
    is_connected: true,
    reconnect_required: false,
  });
  const { data } = await stranger.gql(
    `{ connectionStatuses { platform isConnected }
       account(id: "${server.credentials.other.account_id}") { channelConnections { id platform } botConnections { id } }
     }`,
  );
  expect(data.connectionStatuses).toContainEqual({ platform: 'twitch', isConnected: true });
  expect(data.account.channelConnections).toContainEqual({ id, platform: 'twitch' });

  expect(await connect(stranger, 'twitch', '4711')).toMatchObject({
    status: 200,
    body: { connection_id: id, reconnected: true },
  });
  expect(await connect(stranger, 'twitch', '4712')).toMatchObject({ status: 409 });

  expect((await owner.send('DELETE', `/v1/channel-connections/${id}`, undefined)).status).toBe(404);
  expect((await stranger.send('DELETE', `/v1/channel-connections/${id}`, undefined)).status).toBe(204);
  expect(await one(stranger, '/v1/connections/channel', 'twitch')).toBeUndefined();
  await eventually(async () => cloud.revoked[0], 'the token to be revoked at the vendor');
  await eventually(async () => {
    const rows = await server.database!.db.query('select 1 from connection_grants where connection_id = $1', [id]);
    return rows.length === 0 ? true : undefined;
  }, 'the tokens to be destroyed');
});

test('every vendor is spoken with in its own way', async () => {
  for (const [platform, id] of [
    ['youtube', 'UC-1'],
    ['trovo', '55'],
    ['spotify', 'ada'],
  ] as const) {
    expect([platform, await connect(stranger, platform, id)]).toMatchObject([platform, { status: 200 }]);
    expect(await one(stranger, '/v1/connections/channel', platform)).toMatchObject({ display_name: `Name ${id}` });
    const { id: connection } = (await one(stranger, '/v1/connections/channel', platform))!;
    expect((await stranger.send('DELETE', `/v1/channel-connections/${connection}`, undefined)).status).toBe(204);
  }
  expect(await connect(stranger, 'discord', '900', 'bot')).toMatchObject({ status: 200 });
  const revoked = cloud.revoked.length;
  expect(await connect(owner, 'discord', '900', 'bot')).toMatchObject({ status: 409 });
  // The tokens of the refused login are useless, and not kept.
  expect(cloud.revoked).toHaveLength(revoked + 1);
  const kept = `select 1 from connection_grants where platform = 'discord' and account_id = $1`;
  expect(await server.database!.db.query(kept, [server.credentials.account_id])).toEqual([]);
  expect(await one(stranger, '/v1/bot-connections', 'discord')).toMatchObject({
    platform_user_id: '900',
    display_name: 'Name 900',
  });
  expect(await start(stranger, 'discord', 'channel')).toMatchObject({ status: 400 });
});

test("Kick's events are asked for when a channel is connected, and given back when it is not", async () => {
  const { body } = await connect(stranger, 'kick', '77');
  await eventually(async () => (cloud.subscriptions.size === 7 ? true : undefined), 'seven subscriptions');
  await stranger.send('DELETE', `/v1/channel-connections/${body.connection_id}`, undefined);
  await eventually(async () => (cloud.subscriptions.size === 0 ? true : undefined), 'no subscription');
});

test("another app's subscriptions at Kick are ended, and what they deliver counts no more", async () => {
  const { webhook_signing } = server.credentials;
  const key = createPrivateKey(webhook_signing.kick_private_key);
  const deliver = async (subscription_id: string, message_id: string) => {
    const body = Buffer.from(
      '{"broadcaster":{"user_id":78},"follower":{"user_id":5},"created_at":"2026-11-01T10:00:00Z"}',
    );
    const headers = {
      ...kickHeaders(body, 'channel.followed', message_id, new Date().toISOString(), key),
      'kick-event-subscription-id': subscription_id,
    };
    return (await fetch(`${server.base_url}/v1/webhooks/kick`, { method: 'POST', headers, body })).status;
  };
  const follows = () => [...cloud.subscriptions.values()].find(({ event }) => event === 'channel.followed')?.id;
  const stored = (connection_id: string, id: string) =>
    eventually(async () => {
      const [row] = await server.database!.db.query<{ subscriptions: string[] | null }>(
        'select subscriptions from connection_grants where connection_id = $1',
        [connection_id],
      );
      return row?.subscriptions?.length === 7 && row.subscriptions.includes(id) ? true : undefined;
    }, 'the ids of seven subscriptions');

  const { body } = await connect(stranger, 'kick', '78');
  const first = await eventually(async () => follows(), 'a subscription');
  await stored(body.connection_id, first);
  // The account sets an app of its own, and connects the same channel with it.
  const own = { client_id: 'own-app', client_secret: 'own-secret' };
  cloud.apps.set(own.client_id, own.client_secret);
  expect((await stranger.send('PUT', '/v1/connections/credentials/kick', own)).status).toBe(200);
  // A process that ends before the new grant is stored leaves the subscriptions of the old one.
  const { db } = server.database!;
  await db.query(`
    create function planted() returns trigger language plpgsql as $$ begin raise 'planted'; end $$;
    create trigger planted before update on connection_grants for each row
      when (old.client_id <> new.client_id) execute function planted()`);
  expect(await connect(stranger, 'kick', '78')).toMatchObject({ status: 500 });
  await db.query('drop function planted cascade');
  expect(follows()).toBe(first);
  expect(await connect(stranger, 'kick', '78')).toMatchObject({ status: 200, body: { reconnected: true } });
  const second = await eventually(async () => {
    const id = follows();
    return id === first ? undefined : id;
  }, 'the subscription of the other app');
  await stored(body.connection_id, second);
  expect([...cloud.subscriptions.keys()]).not.toContain(first);

  expect(await deliver(first, 'of-the-old-app')).toBe(200);
  expect(await deliver(second, 'of-the-new-app')).toBe(200);
  const ids = async () => {
    const rows = await server.database!.db.query<{ external_id: string }>(
      `select external_id from platform_event_logs where account_id = $1 and external_id like 'kick:of-%'`,
      [server.credentials.other.account_id],
    );
    return rows.map(({ external_id }) => external_id);
  };
  await eventually(async () => ((await ids()).length > 0 ? true : undefined), 'the follow');
  expect(await ids()).toEqual(['kick:of-the-new-app']);
  await stranger.send('DELETE', `/v1/channel-connections/${body.connection_id}`, undefined);
  await eventually(async () => (cloud.subscriptions.size === 0 ? true : undefined), 'no subscription');
  await stranger.send('DELETE', '/v1/connections/credentials/kick', undefined);
  cloud.apps.delete(own.client_id);
});

test('a state is good once, for ten minutes, for its user, account, platform and way back', async () => {
  const begin = async () => cloud.login((await start(stranger, 'youtube')).body.authorize_url, 'UC-2');
  const begun = await begin();
  const refused = { status: 400, body: { error: 'BAD_REQUEST' } };
  expect(await exchange(owner, 'youtube', begun)).toMatchObject({ status: 400 });
  const { code, state } = begun;
  expect(await exchange(owner, 'youtube', { code, state })).toMatchObject(refused);
  expect(await exchange(stranger, 'twitch', { code, state })).toMatchObject(refused);
  expect(await exchange(stranger, 'youtube', { code, state, return_to: `${WEB}/elsewhere` })).toMatchObject({
    status: 400,
    body: { error: 'VALIDATION_ERROR' },
  });
  const [first, second] = await Promise.all([1, 2].map(() => exchange(stranger, 'youtube', { code, state })));
  expect([first!.status, second!.status].sort()).toEqual([200, 400]);
  expect(await exchange(stranger, 'youtube', { code, state })).toMatchObject(refused);

  const late = await begin();
  await server.database!.db.query("update oauth_states set expires_at = now() - interval '1 second'");
  expect(await exchange(stranger, 'youtube', { code: late.code, state: late.state })).toMatchObject(refused);
  const wrong = await begin();
  expect(await exchange(stranger, 'youtube', { code: 'made-up', state: wrong.state })).toMatchObject(refused);
  for (const bad of [
    'https://evil.example/',
    'https://app.example.evil.example/',
    'https://app.example@evil.example/',
    '//app.example/',
    'https://user@app.example/',
    'http://app.example/',
    'javascript:alert(1)',
    'https://app.example\\@evil.example',
  ])
    expect([bad, await start(stranger, 'youtube', 'channel', bad)]).toMatchObject([bad, { status: 400 }]);
});

test('a state of one account is worth nothing under another of the same person', async () => {
  const { account_id, other } = server.credentials;
  const { code, state } = cloud.login((await start(stranger, 'trovo')).body.authorize_url, '99');
  const begunFor = (id: string) =>
    server.database!.db.query('update oauth_states set account_id = $1 where user_id = $2 and used_by is null', [
      ...[id, other.user_id],
    ]);
  await begunFor(account_id);
  expect(await exchange(stranger, 'trovo', { code, state })).toMatchObject({
    status: 400,
    body: { message: 'This login was not begun here, is over, or was used: begin again' },
  });
  expect(await one(stranger, '/v1/connections/channel', 'trovo')).toBeUndefined();
  expect(await one(owner, '/v1/connections/channel', 'trovo')).not.toMatchObject({ platform_channel_id: '99' });
  // It was not spent by that.
  await begunFor(other.account_id);
  const done = await exchange(stranger, 'trovo', { code, state });
  expect(done).toMatchObject({ status: 200 });
  await stranger.send('DELETE', `/v1/channel-connections/${done.body.connection_id}`, undefined);
});

test('what must be connected again is shown to its people alone, and cleared by those who may connect it', async () => {
  const { db } = server.database!;
  const events = await createPostgresEventStore({ pool: db.pool, wakeups: createLocalWakeups() });
  const channel = (await connect(stranger, 'twitch', '6001')).body.connection_id;
  const bot = (await connect(stranger, 'trovo', '6002', 'bot')).body.connection_id;
  const linked = await stranger.send('POST', '/v1/auth/link', {
    ...{ provider: 'kick', provider_id: 'flagged', access_token: 'development:flagged' },
  });
  const login = (linked.body.data ?? linked.body).id;
  const { account_id, user_id } = server.credentials.other;
  for (const [connection_id, platform] of [
    [channel, 'twitch'],
    [bot, 'trovo'],
  ])
    await sayReconnect(events, 'require_reconnect', { connection_id, account_id, platform });
  await actAsService('test', events)(user, userStream(user_id), {
    ...{ type: 'user:require_login_reconnect', login_connection_id: login },
  });
  const flagged = () => listed(stranger, '/v1/connections/flagged');
  await eventually(async () => ((await flagged()).length === 3 ? true : undefined), 'three flags');
  expect(await flagged()).toEqual([
    { id: bot, kind: 'bot', platform: 'trovo', account_id },
    { id: channel, kind: 'channel', platform: 'twitch', account_id },
    { id: login, kind: 'login', platform: 'kick', account_id: null },
  ]);
  const { data } = await stranger.gql('{ flaggedConnections { id kind platform } }');
  expect(data.flaggedConnections).toContainEqual({ id: bot, kind: 'BOT', platform: 'trovo' });
  expect(await listed(owner, '/v1/connections/flagged')).toEqual([]);
  const system = new ApiClient(server.base_url, server.credentials.system_key);
  expect((await system.get('/v1/connections/flagged')).status).toBe(403);
  expect(await one(stranger, '/v1/connections/status', 'twitch')).toMatchObject({
    ...{ is_connected: false, reconnect_required: true },
  });

  const clear = (api: ApiClient, path: string) => api.send('PUT', `/v1/${path}/reconnect-flag`, {});
  const paths = [`channel-connections/${channel}`, `bot-connections/${bot}`, `login-connections/${login}`];
  for (const path of [...paths, `bot-connections/${channel}`, `channel-connections/${bot}`]) {
    const api = paths.includes(path) ? owner : stranger;
    expect([path, (await clear(api, path)).status]).toEqual([path, 404]);
  }
  expect(await flagged()).toHaveLength(3);
  await db.query('update connection_grants set dead = true where connection_id = any ($1)', [[channel, bot]]);
  // A third time as well as the first.
  for (const path of [...paths, ...paths, ...paths])
    expect([path, await clear(stranger, path)]).toMatchObject([path, { status: 200, body: { success: true } }]);
  expect(await flagged()).toEqual([]);
  const dead = await db.query('select 1 from connection_grants where dead and account_id = $1', [account_id]);
  expect(dead).toEqual([]);
  for (const path of paths.slice(0, 2)) await stranger.send('DELETE', `/v1/${path}`, undefined);
  await events.close();
});

test('a switch of the provider and the plan stop what is new, and what is there may be connected again', async () => {
  expect((await owner.send('PATCH', '/v1/admin/providers/spotify', { channel: false })).status).toBe(200);
  expect(await start(owner, 'spotify')).toMatchObject({
    status: 403,
    body: { error: 'FEATURE_DISABLED', message: 'Feature not enabled: platform:spotify:channel' },
  });
  await owner.send('PATCH', '/v1/admin/providers/spotify', { channel: true });

  // The demo's account has four channels and a shop.
  const { account_id } = server.credentials;
  const limits = (value: number | null) =>
    owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
      limits: [{ name: 'max_integrations', value }],
    });
  expect((await limits(5)).status).toBe(200);
  expect(await start(owner, 'spotify')).toMatchObject({
    status: 403,
    body: { error: 'PLAN_LIMIT_REACHED', message: 'Plan limit reached: max_integrations' },
  });
  const { platform_channel_id } = server.credentials.connections.twitch;
  expect(await connect(owner, 'twitch', platform_channel_id)).toMatchObject({
    status: 200,
    body: { reconnected: true },
  });
  await limits(null);
});

test('an account brings an app of its own, whose secret is never shown', async () => {
  const put = await stranger.send('PUT', '/v1/connections/credentials/spotify', {
    client_id: 'own-app',
    client_secret: 'own-secret',
  });
  expect(put).toMatchObject({ status: 200, body: { data: { platform: 'spotify', client_id: 'own-app' } } });
  expect(JSON.stringify(put.body)).not.toContain('own-secret');
  expect(await one(stranger, '/v1/connections/credential-modes', 'spotify')).toEqual({
    ...{ platform: 'spotify', kind: 'channel', mode: 'account', system_configured: true },
  });
  const { body } = await start(stranger, 'spotify');
  expect(new URL(body.authorize_url).searchParams.get('client_id')).toBe('own-app');
  const { data } = await stranger.gql('{ platformCredentialModes { platform kind mode systemConfigured } }');
  expect(data.platformCredentialModes).toContainEqual({
    ...{ platform: 'twitch', kind: 'BOT', mode: 'SYSTEM', systemConfigured: true },
  });
  expect((await stranger.send('DELETE', '/v1/connections/credentials/spotify', undefined)).status).toBe(204);
  expect(await one(stranger, '/v1/connections/credential-modes', 'spotify')).toMatchObject({ mode: 'system' });

  const meant = { channel_mode: 'account' };
  expect(await owner.send('PUT', '/v1/admin/system-connections/spotify', meant)).toMatchObject({
    status: 200,
    body: { data: { client_id: APP.client_id, source: 'settings', channel_mode: 'account', bot: null } },
  });
  expect(await start(stranger, 'spotify')).toMatchObject({ status: 400 });
  await owner.send('PUT', '/v1/admin/system-connections/spotify', { channel_mode: 'system' });
});

test('operators have an app and a bot of the installation, and nobody else sees them', async () => {
  expect((await stranger.get('/v1/admin/system-connections')).status).toBe(403);
  expect(await start(stranger, 'trovo', 'system_bot')).toMatchObject({ status: 403 });
  expect(await connect(owner, 'trovo', '808', 'system_bot')).toMatchObject({ status: 200 });
  const trovo = () => one(owner, '/v1/admin/system-connections', 'trovo');
  expect(await trovo()).toMatchObject({ bot: { platform_user_id: '808', display_name: 'Name 808' } });
  const statuses = await listed(owner, '/v1/bot-status');
  expect(statuses).toContainEqual({ platform: 'trovo', status: 'active', enabled: true, bot: 'system' });
  const toggled = await owner.send('POST', '/v1/bot-toggle', { platform: 'trovo', enabled: false });
  expect(toggled.body.data).toMatchObject({ status: 'paused', enabled: false });
  expect((await owner.send('POST', '/v1/bot-rejoin', { platform: 'trovo' })).status).toBe(409);
  await owner.send('POST', '/v1/bot-toggle', { platform: 'trovo', enabled: true });
  expect((await owner.send('POST', '/v1/bot-rejoin', { platform: 'trovo' })).status).toBe(200);
  const bots = new ApiClient(server.base_url, server.credentials.system_key);
  expect((await bots.get('/v1/bot-status/channels?platform=trovo')).body.data).toMatchObject([
    { account_id: server.credentials.account_id, platform: 'trovo' },
  ]);
  expect((await owner.send('DELETE', '/v1/admin/system-connections/trovo/bot', undefined)).status).toBe(204);
  expect(await trovo()).toMatchObject({ bot: null });
});

test('a tip token is kept masked, one for each platform', async () => {
  const save = (token: string) => stranger.send('POST', '/v1/se-tokens', { platform: 'twitch', token, label: 'Tips' });
  const made = await save('eyJhbGciOiJIUzI1NiJ9.abc');
  expect(made).toMatchObject({ status: 201, body: { data: { masked_token: 'eyJh********.abc', label: 'Tips' } } });
  const again = await save('short');
  expect(again.body.data).toMatchObject({ id: made.body.data.id, masked_token: '*****' });
  expect(await listed(stranger, '/v1/se-tokens')).toHaveLength(1);
  expect((await owner.get('/v1/se-tokens')).body.data).toEqual([]);
  const { data } = await owner.gql('{ adminSeTokens { items { accountId platform label } } }');
  expect(data.adminSeTokens.items).toEqual([
    { accountId: server.credentials.other.account_id, platform: 'twitch', label: 'Tips' },
  ]);
  const { id } = made.body.data;
  expect((await owner.send('DELETE', `/v1/se-tokens/${id}`, undefined)).status).toBe(404);
  expect((await stranger.send('DELETE', `/v1/se-tokens/${id}`, undefined)).status).toBe(204);
  const rows = await server.database!.db.query('select 1 from se_token_secrets where token_id = $1', [id]);
  expect(rows).toEqual([]);
});

test('operators see where the bot acts, pause it and let it act again, and the account sees by whom', async () => {
  const { account_id, user_id } = server.credentials;
  const row = { account_id, platform: 'kick', bot: 'none' };
  const path = '/v1/admin/bot-control';
  const listed_with = async (query: string) => (await owner.get(`${path}?${query}`)).body.data as object[];
  expect(await listed_with('platform=kick&limit=100')).toContainEqual(
    expect.objectContaining({ ...row, status: 'active', enabled: true }),
  );
  const put = (enabled: boolean) => owner.send('PATCH', `${path}/${account_id}/kick`, { enabled });
  expect((await put(false)).body.data).toMatchObject({ ...row, status: 'paused', enabled: false });
  expect(await one(owner, '/v1/bot-status', 'kick')).toMatchObject({ status: 'paused' });
  expect(await listed_with('status=paused')).toMatchObject([row]);
  expect(await listed_with('status=paused&search=nobody is called so')).toEqual([]);
  const { data } = await owner.gql(
    `mutation ($id: UUID!) { adminUpdateBotControl(accountId: $id, platform: "kick", enabled: true) { status accountName } }`,
    { id: account_id },
  );
  expect(data.adminUpdateBotControl).toEqual({ status: 'ACTIVE', accountName: expect.any(String) });
  const logged = await eventually(async () => {
    const { body } = await owner.get('/v1/account/audit-log?action=connection:bot_toggled');
    return body.data.length > 3 ? body.data : undefined;
  }, 'both changes in the audit log');
  expect(logged[0]).toMatchObject({ actor: { id: user_id }, after: { enabled: true }, before: { enabled: false } });
  const other = server.credentials.other.account_id;
  expect(await owner.send('PATCH', `${path}/${other}/kick`, { enabled: true })).toMatchObject({
    status: 404,
    body: { message: 'The account has no channel of this platform connected' },
  });
  expect((await stranger.get(path)).body.message).toBe('Missing permission: bot-control:read');
  expect((await stranger.send('PATCH', `${path}/${other}/kick`, { enabled: true })).body.message).toBe(
    'Missing permission: bot-control:edit',
  );
});

test('operators see the Discord servers, and end the link of one, which another account may then have', async () => {
  const path = '/v1/admin/discord-guilds';
  const { account_id } = server.credentials.other;
  const shown = { guild_id: '900', guild_name: 'Name 900', account_id, account_name: expect.any(String) };
  expect((await owner.get(`${path}?search=900`)).body).toMatchObject({ data: [shown], _meta: { total: 1 } });
  const { data } = await owner.gql('{ adminDiscordGuilds(search: "901") { total items { guildId } } }');
  expect(data.adminDiscordGuilds).toEqual({ total: 0, items: [] });
  expect((await stranger.get(path)).body.message).toBe('Missing permission: discord-guilds:read');
  expect((await stranger.send('DELETE', `${path}/900`, undefined)).body.message).toBe(
    'Missing permission: discord-guilds:delete',
  );
  const end = (key: string) => owner.send('DELETE', `${path}/900`, undefined, { 'idempotency-key': key });
  expect([(await end('first')).status, (await end('first')).status]).toEqual([204, 204]);
  expect((await end('second')).body).toEqual({ error: 'NOT_FOUND', message: 'Discord server not found' });
  expect((await owner.send('DELETE', `${path}/901`, undefined)).status).toBe(404);
  expect((await owner.send('DELETE', `${path}/${'%25'.repeat(100)}`, undefined)).status).toBe(400);
  expect(await one(stranger, '/v1/bot-connections', 'discord')).toBeUndefined();
  expect(await connect(owner, 'discord', '900', 'bot')).toMatchObject({ status: 200 });
  expect((await owner.get(path)).body.data).toMatchObject([
    { guild_id: '900', account_id: server.credentials.account_id },
  ]);
});

test('what is on air on the channels is shown with its newest figures, and channels without a broadcast too', async () => {
  const { account_id } = server.credentials;
  const started_at = new Date(Date.now() - 60_000).toISOString();
  const broadcaster = { broadcaster_user_id: server.credentials.connections.kick.platform_channel_id };
  const say = (event_type: string, raw: object) =>
    owner.send('POST', '/v1/events/emit', { event_type, platform: 'kick', raw: { ...broadcaster, id: 'b1', ...raw } });
  const kick = () => one(owner, '/v1/channel-status', 'kick');
  expect(await kick()).toMatchObject({
    is_online: false,
    broadcast_id: null,
    broadcast_status: null,
    updated_at: null,
  });
  await say('kick:stream_online', { started_at, title: 'Chess', category: { name: 'Board games' } });
  const online = { is_online: true, broadcast_id: 'b1', broadcast_status: 'live', category: 'Board games' };
  expect(await kick()).toMatchObject({ ...online, stream_title: 'Chess', viewer_count: null });
  await server.database!.db.query(
    `insert into broadcast_figures (account_id, platform, broadcast_id, viewer_count, stream_title, category, tags, sampled_at)
     values ($1, 'kick', 'b1', 42, 'Chess and tea', 'Board games', '[]', now())`,
    [account_id],
  );
  expect(await kick()).toMatchObject({ ...online, stream_title: 'Chess and tea', viewer_count: 42 });
  const { data } = await owner.gql('{ channelStatus { platform isOnline viewerCount } }');
  expect(data.channelStatus).toEqual(
    ['twitch', 'youtube', 'kick', 'trovo'].map((platform) => ({
      platform,
      isOnline: platform === 'kick',
      viewerCount: platform === 'kick' ? 42 : null,
    })),
  );
  await say('kick:stream_offline', { id: 'b0' });
  expect(await kick()).toMatchObject(online);
  await say('kick:stream_offline', {});
  const offline = await kick();
  expect(offline).toMatchObject({ is_online: false, broadcast_id: null, stream_title: null, viewer_count: null });
  expect(offline!['updated_at']).not.toBeNull();
  expect((await listed(stranger, '/v1/channel-status')).filter((row) => row['updated_at'] !== null)).toEqual([]);
});

test('operators detach what an account has, and say which login shows it', async () => {
  const { account_id } = server.credentials.other;
  const { body } = await connect(stranger, 'twitch', '5150');
  const path = `/v1/admin/accounts/${account_id}`;
  expect((await owner.get(`${path}/connections`)).body.data.channel_connections).toContainEqual(
    expect.objectContaining({ id: body.connection_id }),
  );
  const gone = `${path}/channel-connections/${body.connection_id}`;
  expect((await stranger.send('DELETE', gone, undefined)).status).toBe(403);
  expect((await owner.send('DELETE', gone, undefined)).status).toBe(204);
  expect(await one(stranger, '/v1/connections/channel', 'twitch')).toBeUndefined();
  const linked = await stranger.send('POST', '/v1/auth/link', {
    ...{ provider: 'twitch', provider_id: 'shown', access_token: 'development:shown' },
  });
  const login_connection_id = (linked.body.data ?? linked.body).id;
  expect(await owner.send('PUT', `${path}/primary-connection`, { login_connection_id })).toMatchObject({
    status: 200,
    body: { data: { primary_login_connection_id: login_connection_id } },
  });
  expect((await owner.send('PUT', `${path}/primary-connection`, { login_connection_id: null })).status).toBe(200);
});

test('a dissolved account leaves no token, no secret and no subscription behind', async () => {
  const nobody = new ApiClient(server.base_url, '');
  const login = { provider: 'twitch', provider_id: 'founder', access_token: 'development:founder' };
  const { token } = (await nobody.send('POST', '/v1/auth/token/exchange', login)).body;
  const founded = (await new ApiClient(server.base_url, token).send('POST', '/v1/accounts', { name: 'Short' })).body
    .data;
  const founder = new ApiClient(server.base_url, founded.token);
  const features = [{ key: 'feature:connections', enabled: true }];
  await owner.send('PATCH', `/v1/admin/accounts/${founded.id}/overrides`, { features });
  expect(await connect(founder, 'kick', '31')).toMatchObject({ status: 200 });
  expect(await connect(founder, 'trovo', '32', 'bot')).toMatchObject({ status: 200 });
  const app = { client_id: 'theirs', client_secret: 'own-secret' };
  expect((await founder.send('PUT', '/v1/connections/credentials/twitch', app)).status).toBe(200);
  const tips = { platform: 'kick', token: 'tip-token-of-the-founder' };
  expect((await founder.send('POST', '/v1/se-tokens', tips)).status).toBe(201);
  const left = async () => {
    const [row] = await server.database!.db.query<{ n: number }>(
      `select (select count(*)::int from connection_grants where account_id = $1)
            + (select count(*)::int from app_secrets where id like $1::text || '/%')
            + (select count(*)::int from se_token_secrets s join se_tokens t on t.id = s.token_id
               where t.account_id = $1) as n`,
      [founded.id],
    );
    return row!.n;
  };
  expect(await left()).toBe(4);
  await eventually(async () => (cloud.subscriptions.size === 7 ? true : undefined), 'subscriptions');
  const before = cloud.revoked.length;
  const gone = await founder.send('DELETE', `/v1/accounts/${founded.id}`, { confirm_name: 'Short' });
  expect(gone.status).toBe(200);
  await eventually(async () => ((await left()) === 0 ? true : undefined), 'nothing to be left');
  expect(cloud.subscriptions.size).toBe(0);
  // Kick takes both tokens back, Trovo one.
  await eventually(async () => (cloud.revoked.length === before + 3 ? true : undefined), 'three revoked tokens');
  const rows = await server.database!.db.query('select 1 from se_token_secrets');
  expect(rows).toEqual([]);
});

test('what a dissolved account gets from a request that was on its way is taken from it', async () => {
  const [account_id, connection_id, token_id] = [v7(), v7(), v7()];
  const { db } = server.database!;
  const events = await createPostgresEventStore({ pool: db.pool, wakeups: createLocalWakeups() });
  const say = (stream: string, type: string, data: object) =>
    events.append([{ stream, expected: 'any', events: [{ id: v7(), type, data: { account_id, ...data } }] }], {});
  const at = new Date().toISOString();
  await say(accountStream(account_id), 'account:dissolved', { owner_id: v7(), dissolved_at: at });
  const guild = { connection_id, platform: 'discord', platform_user_id: '901' } as const;
  await actAsService('late', events)(
    connections,
    connectionsStream(account_id),
    { type: 'connection:connect_bot', account_id, ...guild },
    { reservations: connectionReservations },
  );
  const token = { token_id, platform: 'kick', label: '', saved_at: at };
  await say(seTokensStream(account_id), 'se_token:saved', token);
  await db.query('insert into app_secrets (id, client_id, sealed) values ($1, $2, $2)', [`${account_id}/kick`, 'x']);
  await say(accountAppsStream(account_id), 'account_app:set', { platform: 'kick', client_id: 'x', set_at: at });
  await eventually(async () => {
    const left = await db.query(
      `select 1 from bot_connections where account_id = $1 union all select 1 from se_tokens where account_id = $1
       union all select 1 from app_secrets where id = $1::text || '/kick'`,
      [account_id],
    );
    const tokens = await events.read(seTokensStream(account_id));
    const places = await events.read(guildStream('901'));
    return left.length === 0 && tokens.length === 2 && places.length === 2 ? true : undefined;
  }, 'nothing to be left');
  await events.close();
});

test('metadata of platforms are everybody’s', async () => {
  const { body } = await new ApiClient(server.base_url, '').get('/v1/platforms/metadata');
  expect(body.data).toContainEqual(
    expect.objectContaining({ platform: 'kick', label: 'Kick', streaming: true, moderation: ['delete'] }),
  );
});

describe('the log of all of it', () => {
  test('holds nothing of a token, a secret or a code, at the level that says most', () => {
    expect(logged.lines).toBeGreaterThan(100);
    expect(logged.secrets).toEqual([]);
    // What is looked for is what these tests send.
    for (const sent of ['app-secret', 'own-secret', 'tip-token-of-the-founder']) expect(sent).toMatch(SECRET);
  });
});
