import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { user, type UserEvent } from '../../domain/identity/users';
import { loginConnections } from '../../projections/identity/login-connections';
import { discordIdentity } from '../../vendors/discord/identity';
import { createHttpClients } from '../../vendors/http/client';
import type { HttpClients } from '../../vendors/http/port';
import { kickIdentity } from '../../vendors/kick/identity';
import { ProviderUnavailable, TokenRefused, type IdentityProvider } from '../../vendors/login/port';
import { trovoIdentity } from '../../vendors/trovo/identity';
import { twitchIdentity } from '../../vendors/twitch/identity';
import { googleIdentity } from '../../vendors/youtube/identity';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { Client as Socket } from '../support/realtime';
import { runLumio, startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { FakeDiscord } from '../vendors/discord-cloud';
import type { FakeVendor } from '../vendors/fake';
import { FakeKick } from '../vendors/kick-cloud';
import { FakeTrovo } from '../vendors/trovo-cloud';
import { FakeTwitch } from '../vendors/twitch-cloud';
import { FakeYoutube } from '../vendors/youtube-cloud';

const now = '2026-01-02T03:04:05.000Z';

describe('what a user logs in with', () => {
  const given = decider(user);
  const user_id = uuid(1);
  const login = (n: number) => ({ login_connection_id: uuid(n), provider: 'twitch', identity: `hash-${n}` }) as const;
  const registered: UserEvent = { type: 'user:registered', user_id, registered_at: now };
  const connected = (n: number, connected_at = now): UserEvent => ({
    type: 'user:login_connected',
    user_id,
    ...login(n),
    linked_with: null,
    connected_at,
  });
  const removed = (n: number, removed_with: string | null = null, at = now): UserEvent => ({
    type: 'user:login_disconnected',
    user_id,
    ...login(n),
    ...{ removed_with, session_id: null, disconnected_at: at },
  });
  const required: UserEvent = {
    type: 'user:login_reconnect_required',
    user_id,
    login_connection_id: uuid(2),
    required_at: now,
  };
  const cleared: UserEvent = {
    type: 'user:login_reconnect_cleared',
    user_id,
    login_connection_id: uuid(2),
    cleared_at: now,
  };
  const one = [registered, connected(2)];

  test('is connected once, and again after its tokens were refused', () => {
    const again = { type: 'user:connect_login', ...login(2), login_connection_id: uuid(9), now } as const;
    given([registered])
      .when({ type: 'user:connect_login', ...login(2), now })
      .then(connected(2));
    given(one).when(again).thenNothing();
    given([...one, required])
      .when(again)
      .then(cleared);
  });

  test('is taken away while another is left', () => {
    const away = { type: 'user:disconnect_login', login_connection_id: uuid(2), now } as const;
    given(one).when(away).thenFails('LAST_LOGIN');
    given([...one, connected(3)])
      .when(away)
      .then(removed(2));
    given([...one, connected(3)])
      .when({ ...away, login_connection_id: uuid(4) })
      .thenFails('LOGIN_NOT_FOUND');
  });

  test('is not taken away by a younger one in the first 24 hours of that', () => {
    const [before, later, day_after] = [
      '2026-01-01T00:00:00.000Z',
      '2026-01-03T03:04:04.999Z',
      '2026-01-03T03:04:05.000Z',
    ];
    const three = [registered, connected(2, before), connected(3), connected(4, later)];
    const remove = (n: number, removed_with: string | null, at: string) =>
      given(three).when({ type: 'user:disconnect_login', login_connection_id: uuid(n), removed_with, now: at });
    remove(2, uuid(3), later).thenFails('RECENT_LOGIN');
    remove(2, uuid(3), day_after).then(removed(2, uuid(3), day_after));
    // A younger one, itself, and any by an older or unknown one.
    remove(4, uuid(3), later).then(removed(4, uuid(3), later));
    remove(3, uuid(3), later).then(removed(3, uuid(3), later));
    remove(4, uuid(2), later).then(removed(4, uuid(2), later));
    remove(2, null, later).then(removed(2, null, later));
  });

  test('asks for its person once, until they were there', () => {
    const require = { type: 'user:require_login_reconnect', login_connection_id: uuid(2), now } as const;
    const clear = { type: 'user:clear_login_reconnect', login_connection_id: uuid(2), now } as const;
    given(one).when(require).then(required);
    given([...one, required])
      .when(require)
      .thenNothing();
    given([...one, required])
      .when(clear)
      .then(cleared);
    given(one).when(clear).thenNothing();
    given(one)
      .when({ ...clear, login_connection_id: uuid(4) })
      .thenFails('LOGIN_NOT_FOUND');
  });

  test('shows the same rows when a page comes twice', async () => {
    const t = await testDatabase();
    await feed(t.db, loginConnections, [connected(2), connected(3), required, removed(3)], 2);
    expect(await t.db.query('select id, user_id, provider, reconnect_required from login_connections')).toEqual([
      { id: uuid(2), user_id, provider: 'twitch', reconnect_required: true },
    ]);
    await t.drop();
  });
});

describe('who a token is of, by the word of', () => {
  const own = { client_ids: ['our-app', 'our-phone-app'] };
  const vendors: Record<string, [() => FakeVendor, (http: HttpClients, url: string) => IdentityProvider]> = {
    twitch: [() => new FakeTwitch(), (http, url) => twitchIdentity(http, { ...own, id_url: url, api_url: url })],
    google: [() => new FakeYoutube(), (http, url) => googleIdentity(http, { ...own, api_url: url })],
    kick: [() => new FakeKick(), (http, url) => kickIdentity(http, { ...own, id_url: url, api_url: url })],
    trovo: [() => new FakeTrovo(), (http, url) => trovoIdentity(http, { ...own, api_url: url })],
    discord: [() => new FakeDiscord(), (http, url) => discordIdentity(http, { ...own, api_url: url })],
  };

  describe.each(Object.entries(vendors))('%s', (name, [fake, make]) => {
    let vendor: FakeVendor;
    let http: HttpClients;
    let provider: IdentityProvider;
    beforeEach(async () => {
      vendor = await fake().start();
      http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
      provider = make(http, vendor.base_url);
      const person = { id: '4711', name: 'Ada', email: 'ada@example.com', scopes: ['a', 'b'] };
      vendor.people.set('right', { ...person, client_id: 'our-app' });
      vendor.people.set('phone', { ...person, client_id: 'our-phone-app' });
      vendor.people.set('foreign', { ...person, client_id: 'another-app' });
    });
    afterEach(async () => {
      await http.close();
      await vendor.close();
    });

    test('the id, the profile and the scopes are the provider’s', async () => {
      const said = await provider.identify('right');
      expect(said).toMatchObject({
        provider_id: '4711',
        display_name: 'Ada',
        email: 'ada@example.com',
        scopes: ['a', 'b'],
      });
      expect(said.expires_at).toBeGreaterThan(Date.now());
      expect((await provider.identify('phone')).provider_id).toBe('4711');
    });

    test('a token of another app, a made-up one and a revoked one are refused', async () => {
      await expect(provider.identify('foreign')).rejects.toBeInstanceOf(TokenRefused);
      await expect(provider.identify('made-up')).rejects.toBeInstanceOf(TokenRefused);
      vendor.people.delete('right');
      await expect(provider.identify('right')).rejects.toBeInstanceOf(TokenRefused);
    });

    test.each([403, 302])(`${name} that answers %i has said nothing`, async (status) => {
      vendor.fault = { status };
      await expect(provider.identify('right')).rejects.toBeInstanceOf(ProviderUnavailable);
    });

    test('a busy one says when to come again', async () => {
      vendor.fault = { status: 429, headers: { 'retry-after': '7' } };
      await expect(provider.identify('right')).rejects.toMatchObject({ name: 'ProviderAway', retry_after_ms: 7000 });
    });
  });
});

describe('logins on the server', () => {
  let twitch: FakeVendor;
  let kick: FakeVendor;
  let server: TestServer;
  let nobody: ApiClient;
  let people = 0;

  beforeAll(async () => {
    [twitch, kick] = await Promise.all([new FakeTwitch().start(), new FakeKick().start()]);
    server = await startServer({
      env: {
        LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
        LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true',
        LUMIO_TWITCH__CLIENT_ID: 'our-app',
        LUMIO_TWITCH__ID_URL: twitch.base_url,
        LUMIO_TWITCH__API_URL: `${twitch.base_url}/`,
        LUMIO_KICK__CLIENT_ID: 'our-app',
        LUMIO_KICK__ID_URL: kick.base_url,
        LUMIO_KICK__API_URL: kick.base_url,
      },
    });
    nobody = new ApiClient(server.base_url, '');
  });
  afterAll(async () => {
    await server?.dispose();
    await twitch?.close();
    await kick?.close();
  });
  afterEach(() => {
    twitch.fault = null;
  });

  /** Somebody new at a vendor, with a token for our app. */
  function person(vendor = twitch, of: Partial<{ client_id: string; name: string }> = {}) {
    people += 1;
    // So long that no hash or id has it by chance.
    const id = String(4_711_000_000_000_000 + people);
    const access_token = `token-${id}`;
    vendor.people.set(access_token, {
      id,
      name: `Person ${id}`,
      email: `${id}@example.com`,
      client_id: 'our-app',
      ...of,
    });
    return { provider: vendor === kick ? 'kick' : 'twitch', provider_id: id, access_token };
  }
  const exchange = (input: object, headers: Record<string, string> = {}) =>
    nobody.send('POST', '/v1/auth/token/exchange', input, headers);
  async function loggedIn(input = person()) {
    const { status, body } = await exchange(input);
    expect(status).toBe(200);
    return { input, ...body, api: new ApiClient(server.base_url, body.token) };
  }

  test('the first login makes a user, the next ones find them, on both protocols alike', async () => {
    const input = person();
    const first = await exchange({ ...input, profile: { display_name: 'Made up', email: 'boss@example.com' } });
    expect(first).toMatchObject({
      status: 200,
      body: { token: expect.stringMatching(/^lm_eyJ/), is_new_user: true, has_account: false },
    });
    const { provider_id: providerId, access_token: accessToken } = input;
    const mutation = `mutation ($input: ExchangeTokenInput!) {
      exchangeToken(input: $input) { token refreshToken expiresAt isNewUser hasAccount } }`;
    const second = await nobody.gql(mutation, { input: { provider: 'twitch', providerId, accessToken } });
    expect(second.data.exchangeToken).toMatchObject({ isNewUser: false, hasAccount: false });
    const api = new ApiClient(server.base_url, second.data.exchangeToken.token);
    const { body } = await api.get('/v1/users/me/login-connections');
    expect(body.data).toEqual([
      {
        id: expect.any(String),
        provider: 'twitch',
        provider_account_id: providerId,
        username: `person ${providerId}`,
        display_name: `Person ${providerId}`,
        avatar_url: null,
        scopes: [],
        token_expires_at: expect.any(String),
        reconnect_required: false,
        connected_at: expect.any(String),
      },
    ]);
    const { db } = server.database!;
    const [grant] = await db.query('select user_id, sealed from login_grants where provider_account_id = $1', [
      providerId,
    ]);
    expect(grant!.sealed).not.toContain(accessToken);
    expect(await db.query('select display_name, email from profiles where user_id = $1', [grant!.user_id])).toEqual([
      { display_name: `Person ${providerId}`, email: `${providerId}@example.com` },
    ]);
    const stored = await db.query('select data::text as text from domain_events where data::text like $1', [
      `%${providerId}%`,
    ]);
    expect(stored).toEqual([]);
  });

  test('two first logins at once make one user', async () => {
    const input = person();
    const both = await Promise.all([exchange(input), exchange(input), exchange(input)]);
    expect(both.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(both.filter(({ body }) => body.is_new_user)).toHaveLength(1);
    const users = await Promise.all(
      both.map(({ body }) => new ApiClient(server.base_url, body.token).get('/v1/users/me/login-connections')),
    );
    expect(new Set(users.map(({ body }) => body.data[0].id)).size).toBe(1);
    expect(users.map(({ body }) => body.data.length)).toEqual([1, 1, 1]);
  });

  test('under one Idempotency-Key a login is one login, and new both times', async () => {
    const input = person();
    const once = () => exchange(input, { 'idempotency-key': `login ${input.provider_id}` });
    const [first, second] = [await once(), await once()];
    expect(first.body).toEqual(second.body);
    expect((await new ApiClient(server.base_url, first.body.token).get('/v1/users/me/sessions')).body._meta.total).toBe(
      1,
    );
  });

  test('nobody is believed who they are: the provider says', async () => {
    const ada = await loggedIn();
    const eve = person();
    const refused = { status: 401, body: { error: 'UNAUTHORIZED', message: 'Invalid or expired provider token' } };
    // Somebody else's id beside one's own token; a token of another app; a token of nobody.
    expect(await exchange({ ...eve, provider_id: ada.input.provider_id })).toMatchObject(refused);
    expect(await exchange(person(twitch, { client_id: 'another-app' }))).toMatchObject(refused);
    expect(await exchange({ ...eve, access_token: 'made-up' })).toMatchObject(refused);
    twitch.people.delete(eve.access_token);
    expect(await exchange(eve)).toMatchObject(refused);
    // The same number at another provider is another person.
    const twin = { provider: 'kick', provider_id: ada.input.provider_id, access_token: 'twin' };
    kick.people.set('twin', { id: ada.input.provider_id, name: 'Twin', email: '1@example.com', client_id: 'our-app' });
    expect(await exchange(twin)).toMatchObject({ status: 200, body: { is_new_user: true } });
  });

  test.each<[string, FakeVendor['fault'], number]>([
    ['is down', { status: 500 }, 10],
    ['is busy', { status: 429, headers: { 'retry-after': '30' } }, 30],
    ['says nothing at all', 'hang', 10],
  ])('while the provider %s nobody logs in, and is told when to come again', async (_what, fault, seconds) => {
    const input = person();
    twitch.fault = fault;
    const { status, headers, body } = await exchange(input);
    expect({ status, after: headers.get('retry-after') }).toEqual({ status: 503, after: String(seconds) });
    expect(body).toEqual({ error: 'INTERNAL_SERVER_ERROR', message: 'An internal server error occurred' });
    twitch.fault = null;
  });

  test('input is judged: the provider, the token, the profile', async () => {
    const input = person();
    const invalid = (message: string) => ({ status: 400, body: { error: 'VALIDATION_ERROR', message } });
    expect(await exchange({ ...input, provider: 'myspace' })).toMatchObject(invalid('Invalid provider: myspace'));
    expect(await exchange({ ...input, access_token: 'a\r\nb' })).toMatchObject({ status: 400 });
    expect(await exchange({ ...input, profile: { display_name: ' ' } })).toMatchObject({ status: 400 });
    expect(await exchange({ ...input, user_id: uuid(1) })).toMatchObject({ status: 400 });
  });

  test('a further login is linked, logs in as the same user, and is taken away; the last one stays', async () => {
    const ada = await loggedIn();
    const second = person(kick);
    const linked = await ada.api.send('POST', '/v1/auth/link', second);
    expect(linked).toMatchObject({ status: 201, body: { data: { provider: 'kick', reconnect_required: false } } });
    const again = await ada.api.send('POST', '/v1/auth/link', second);
    expect(again.body.data.id).toBe(linked.body.data.id);
    expect((await exchange(second)).body.is_new_user).toBe(false);

    const eve = await loggedIn();
    expect(await eve.api.send('POST', '/v1/auth/link', second)).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'This provider account logs in as another user' },
    });
    const absent = { status: 404, body: { error: 'NOT_FOUND', message: 'Login connection not found' } };
    const { id } = linked.body.data;
    expect(await eve.api.send('DELETE', `/v1/login-connections/${id}`, undefined)).toMatchObject(absent);
    expect(await eve.api.send('PUT', `/v1/login-connections/${id}/reconnect-flag`, {})).toMatchObject(absent);
    expect(await ada.api.send('PUT', `/v1/login-connections/${id}/reconnect-flag`, {})).toMatchObject({
      status: 200,
      body: { success: true },
    });

    const disconnect = 'mutation ($id: UUID!) { disconnectLoginConnection(loginConnectionId: $id) { success } }';
    expect((await ada.api.gql(disconnect, { id })).data.disconnectLoginConnection).toEqual({ success: true });
    const left = (await ada.api.get('/v1/users/me/login-connections')).body.data;
    expect(left).toHaveLength(1);
    expect(await ada.api.send('DELETE', `/v1/login-connections/${left[0].id}`, undefined)).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'The last login connection cannot be removed' },
    });
    // What is given back may log in as somebody else.
    expect((await eve.api.send('POST', '/v1/auth/link', second)).status).toBe(201);
  });

  test('a login linked by a thief removes no older one, and takes with it all that was made in its sessions', async () => {
    const ada = await loggedIn();
    const stolen = person(kick);
    const { id } = (await ada.api.send('POST', '/v1/auth/link', stolen)).body.data;
    const own = (await ada.api.get('/v1/users/me/login-connections')).body.data[0].id;
    const account = await ada.api.send('POST', '/v1/accounts', { name: 'Shared' });
    const victim = new ApiClient(server.base_url, account.body.token ?? account.body.data.token);
    const { active_account_id } = (await victim.get('/v1/users/me')).body.data;
    const granting = ['admin', 'grant', '--account', active_account_id, '--feature', 'feature:apikeys'];
    expect(await runLumio(granting, server.env)).toMatchObject({ code: 0 });
    await eventually(async () => (await victim.get('/v1/api-keys')).status === 200 || undefined, 'the feature');
    const thief = await loggedIn(stolen);
    const recent = {
      error: 'FORBIDDEN',
      message: 'A login that was linked within the last 24 hours cannot remove an older one',
    };
    const remove = (api: ApiClient, login: string) => api.send('DELETE', `/v1/login-connections/${login}`, undefined);
    expect(await remove(thief.api, own)).toMatchObject({ status: 403, body: recent });

    const scope = { label: 'Made', permissions: ['events:read', 'apikeys:create', 'tokens:create'] };
    const made = async (api: ApiClient, path: string) => {
      const { status, body } = await api.send('POST', path, scope);
      expect(status).toBe(201);
      return new ApiClient(server.base_url, body.data.key ?? body.data.token);
    };
    const [kept, kept_page] = [await made(victim, '/v1/api-keys'), await made(victim, '/v1/tokens')];
    const key = await made(thief.api, '/v1/api-keys');
    // A key cannot do what its login may not.
    expect(await remove(key, own)).toMatchObject({ status: 403, body: recent });
    const ending = [
      key,
      await made(key, '/v1/api-keys'),
      await made(key, '/v1/tokens'),
      await made(thief.api, '/v1/tokens'),
    ];
    // A key outlives its session, and not its login.
    expect((await thief.api.send('POST', '/v1/auth/logout-session', {})).status).toBe(200);
    const statuses = (clients: ApiClient[]) =>
      Promise.all(clients.map(async (client) => (await client.get('/v1/tokens/me')).status));
    expect(await statuses(ending)).toEqual([200, 200, 200, 200]);
    const again = await loggedIn(stolen);
    const socket = await Socket.open(server.ws_url, null, { headers: { authorization: `Bearer ${again.token}` } });

    expect(await remove(victim, id)).toMatchObject({ status: 204 });
    expect(await statuses([...ending, again.api])).toEqual([401, 401, 401, 401, 401]);
    expect(await statuses([kept, kept_page, victim])).toEqual([200, 200, 200]);
    expect(await socket.closed()).toBe(4401);
    expect((await victim.get('/v1/api-keys')).body.data).toMatchObject([{ label: 'Made' }]);
    expect(
      await server.database!.db.query('select 1 from credential_origins where login_connection_id = $1', [id]),
    ).toEqual([]);

    const entries = async () => {
      const { data } = (await ada.api.get('/v1/me/audit-log')).body;
      const actions = ['user:login_connected', 'user:login_disconnected'];
      const found = (data as any[]).filter(({ action, after, before }) => {
        return actions.includes(action) && [after, before].some((part) => part?.login_connection_id === id);
      });
      return found.length === 2 ? found : undefined;
    };
    const audited = await eventually(entries, 'both entries');
    expect(JSON.stringify(audited[1].after)).toContain(`"linked_with":"${own}"`);
    expect(JSON.stringify(audited[0])).toContain(`"removed_with":"${own}"`);
  });

  test('a removed login ends the sessions that it opened, and no others', async () => {
    const ada = await loggedIn();
    const second = person(kick);
    const { id } = (await ada.api.send('POST', '/v1/auth/link', second)).body.data;
    const thief = await loggedIn(second);
    expect((await thief.api.get('/v1/users/me')).body.data.id).toBe((await ada.api.get('/v1/users/me')).body.data.id);
    expect((await ada.api.send('DELETE', `/v1/login-connections/${id}`, undefined)).status).toBe(204);
    expect((await thief.api.get('/v1/users/me')).status).toBe(401);
    const { refresh_token } = thief;
    expect((await nobody.send('POST', '/v1/auth/refresh', { refresh_token })).status).toBe(401);
    expect((await ada.api.get('/v1/users/me/sessions')).body.data).toHaveLength(1);
  });

  test('a login that an account is shown with stays until another one is chosen', async () => {
    const ada = await loggedIn();
    const linked = (await ada.api.send('POST', '/v1/auth/link', person(kick))).body.data.id;
    const made = await ada.api.send('POST', '/v1/accounts', { name: 'Shown' });
    const api = new ApiClient(server.base_url, made.body.token ?? made.body.data.token);
    const show = (login_connection_id: string | null) =>
      api.send('PUT', '/v1/accounts/primary-connection', { login_connection_id });
    expect((await show(linked)).status).toBe(200);
    expect(await api.send('DELETE', `/v1/login-connections/${linked}`, undefined)).toMatchObject({
      status: 409,
      body: { message: 'An account is shown with this login connection: choose another one for it first' },
    });
    expect((await show(null)).status).toBe(200);
    expect((await api.send('DELETE', `/v1/login-connections/${linked}`, undefined)).status).toBe(204);
    // Whoever has an account is told so, and logs in on it.
    const again = await loggedIn(ada.input);
    expect(again.has_account).toBe(true);
    expect((await again.api.get('/v1/users/me')).body.data.active_account_id).toBe(
      (await api.get('/v1/users/me')).body.data.active_account_id,
    );
  });

  test('own sessions are listed and ended, one or all others; those of others are not there', async () => {
    const input = person();
    const [first, second, third] = [await loggedIn(input), await loggedIn(input), await loggedIn(input)];
    const listed = (await first.api.get('/v1/users/me/sessions')).body;
    expect(listed._meta.total).toBe(3);
    expect(listed.data.map(({ current }: { current: boolean }) => current)).toEqual([false, false, true]);
    expect(listed.data[0]).toEqual({
      id: expect.any(String),
      provider: 'twitch',
      active_account_id: null,
      created_at: expect.any(String),
      refreshed_at: expect.any(String),
      expires_at: expect.any(String),
      current: false,
    });
    const eve = await loggedIn();
    const [{ id: newest }] = listed.data;
    expect(await eve.api.send('DELETE', `/v1/users/me/sessions/${newest}`, undefined)).toMatchObject({
      status: 404,
      body: { error: 'NOT_FOUND', message: 'Session not found' },
    });
    expect((await first.api.send('DELETE', `/v1/users/me/sessions/${newest}`, undefined)).status).toBe(204);
    expect((await third.api.get('/v1/users/me/sessions')).status).toBe(401);
    const all = await first.api.gql('mutation { deleteAllOtherSessions { success } }');
    expect(all.data.deleteAllOtherSessions).toEqual({ success: true });
    expect((await second.api.get('/v1/users/me/sessions')).status).toBe(401);
    const { sessions } = (await first.api.gql('{ sessions { total items { current } } }')).data;
    expect(sessions).toEqual({ total: 1, items: [{ current: true }] });
  });

  test('a session given before a login is not the one of the login', async () => {
    const input = person();
    const [before, after] = [await loggedIn(input), await loggedIn(input)];
    const ids = await Promise.all(
      [before, after].map(
        async ({ api }) =>
          (await api.get('/v1/users/me/sessions')).body.data.find((one: { current: boolean }) => one.current).id,
      ),
    );
    expect(ids[0]).not.toBe(ids[1]);
  });

  test('a token of development is right where the setting says so, and for nobody else', async () => {
    const input = { provider: 'discord', provider_id: '77' };
    const wrong = { ...input, access_token: 'development:78' };
    expect((await exchange(wrong)).status).toBe(401);
    expect((await exchange({ ...input, access_token: 'made-up' })).status).toBe(401);
    const name = { ...input, provider: 'trovo', access_token: 'development:77:Ada' };
    expect(await exchange(name)).toMatchObject({ status: 200, body: { is_new_user: true } });
  });

  test('a provider that is switched off lets nobody in, and the switch for new accounts does not matter', async () => {
    const ada = await loggedIn();
    expect((await ada.api.send('POST', '/v1/auth/link', person(kick))).status).toBe(201);
    const off = ['system:account_creation', 'platform:kick:login'].map((flag) =>
      runLumio(['admin', 'switch-feature', flag, 'off'], server.env),
    );
    expect(await Promise.all(off)).toMatchObject([{ code: 0 }, { code: 0 }]);
    const refused = { error: 'FEATURE_DISABLED', message: 'Feature not enabled: platform:kick:login' };
    expect(await exchange(person(kick))).toMatchObject({ status: 403, body: refused });
    expect(await ada.api.send('POST', '/v1/auth/link', person(kick))).toMatchObject({ status: 403, body: refused });
    expect((await ada.api.get('/v1/users/me/login-connections')).body.data).toMatchObject([{ provider: 'twitch' }]);
    expect((await exchange(person())).status).toBe(200);
  });
});
