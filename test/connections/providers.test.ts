import { blockingFlag } from '../../access/authorization/provider-switches';
import { CONNECTION_KINDS, PROVIDERS, switchesOf } from '../../domain/connections/providers';
import { type Door, doorAt } from '../support/door';
import { startServer, type TestServer } from '../support/server';

describe('a provider', () => {
  const features = (...off: string[]) => ({ enabled: async (flag: string) => !off.includes(flag) });
  test.each(CONNECTION_KINDS)('is closed for a %s by its master switch, or that of the kind', async (kind) => {
    const [master, own] = switchesOf('kick', kind) as [string, string];
    const others = CONNECTION_KINDS.filter((one) => one !== kind).map((one) => `platform:kick:${one}`);
    expect(await blockingFlag(features(...others), 'kick', kind)).toBeNull();
    expect(await blockingFlag(features(own), 'kick', kind)).toBe(own);
    expect(await blockingFlag(features(master, own), 'kick', kind)).toBe(master);
  });
  test('that is not known, or not connected for that, is closed', async () => {
    const server_features = { enabled: async (flag: string) => flag === 'platform:spotify' };
    expect(await blockingFlag(server_features, 'spotify', 'login')).toBe('platform:spotify:login');
  });
});

describe('providers on the server', () => {
  let server: TestServer;
  let operator: Door;
  let stranger: Door;
  let nobody: Door;
  beforeAll(async () => {
    server = await startServer({ env: { LUMIO_TWITCH__CLIENT_ID: 'app' } });
    const { base_url, credentials } = server;
    operator = doorAt(base_url, credentials.access_token);
    stranger = doorAt(base_url, credentials.other.access_token);
    nobody = doorAt(base_url, '');
  });
  afterAll(() => server?.dispose());

  const enabled = async (kind?: string): Promise<string[]> =>
    (await nobody.rest('GET', `/v1/providers/enabled${kind === undefined ? '' : `?connection_type=${kind}`}`)).json
      .data;
  const turn = (platform: string, body: object) => operator.rest('PATCH', `/v1/admin/providers/${platform}`, { body });

  test('are listed with their switches, connections, and whether there is an app', async () => {
    const { status, json } = await operator.rest('GET', '/v1/admin/providers');
    expect(status).toBe(200);
    expect(json.data).toHaveLength(PROVIDERS.length);
    const [twitch, youtube, , , discord, spotify] = json.data;
    expect(twitch).toEqual({
      platform: 'twitch',
      label: 'Twitch',
      ...{ enabled: true, login: true, channel: true, bot: true },
      credentials_set: true,
      login_connections: 0,
      channel_connections: 1,
      bot_connections: 0,
    });
    expect(youtube).toMatchObject({ platform: 'youtube', label: 'YouTube', credentials_set: false });
    expect(discord).toMatchObject({ platform: 'discord', login: true, channel: null, bot: true });
    expect(spotify).toMatchObject({ platform: 'spotify', login: null, channel: true, bot: null });
    const { data } = (await operator.gql('{ adminPlatforms { platform label enabled } }')).json;
    expect(data.adminPlatforms).toContainEqual({ platform: 'kick', label: 'Kick', enabled: true });
    expect((await operator.rest('GET', '/v1/admin/providers/twitch')).json.data).toEqual(twitch);
    expect((await operator.rest('GET', '/v1/admin/platforms/kick')).json.data).toEqual(data.adminPlatforms[2]);
    for (const path of ['/v1/admin/providers/shopify', '/v1/admin/platforms/shopify'])
      expect((await operator.rest('GET', path)).json).toEqual({ error: 'NOT_FOUND', message: 'Provider not found' });
    // What is only integrated is no provider.
    expect(JSON.stringify(json)).not.toMatch(/shopify|streamelements/);
  });

  test('everybody sees which may be connected, for each kind', async () => {
    const all = ['twitch', 'youtube', 'kick', 'trovo'];
    expect(await enabled('login')).toEqual([...all, 'discord']);
    expect(await enabled('channel')).toEqual([...all, 'spotify']);
    expect(await enabled('bot')).toEqual([...all, 'discord']);
    expect(await enabled()).toEqual([...all, 'discord', 'spotify']);
    expect((await nobody.rest('GET', '/v1/providers/enabled?connection_type=shop')).json.error).toBe(
      'VALIDATION_ERROR',
    );

    expect((await turn('kick', { login: false })).json.data).toMatchObject({ login: false, bot: true, enabled: true });
    expect((await turn('trovo', { login: false, bot: false })).json.data).toMatchObject({ login: false, bot: false });
    const off = await operator.rest('PATCH', '/v1/admin/platforms/discord', { body: { enabled: false } });
    expect(off.json.data).toEqual({ platform: 'discord', label: 'Discord', enabled: false });
    expect(await enabled('login')).toEqual(['twitch', 'youtube']);
    expect(await enabled('bot')).toEqual(['twitch', 'youtube', 'kick']);
    expect(await enabled('channel')).toEqual([...all, 'spotify']);
    const { data } = (
      await nobody.gql('{ enabledPlatforms enabledProviders(connectionType: "bot") every: enabledProviders }')
    ).json;
    // A channel alone makes no platform, nor does a kind under a master switch that is off.
    expect(data).toEqual({
      enabledPlatforms: ['twitch', 'youtube', 'kick'],
      enabledProviders: ['twitch', 'youtube', 'kick'],
      every: [...all, 'spotify'],
    });
    expect((await nobody.rest('GET', '/v1/platforms/enabled')).json.data).toEqual(data.enabledPlatforms);

    await turn('kick', { login: true });
    await turn('trovo', { login: true, bot: true });
    await turn('discord', { enabled: true });
    expect(await enabled('login')).toEqual([...all, 'discord']);
  });

  test('closing one stops nobody who is connected, and who logs in there anew', async () => {
    const exchange = () =>
      nobody.rest('POST', '/v1/auth/token/exchange', {
        body: { provider: 'twitch', provider_id: '42', access_token: 'made-up' },
      });
    await turn('twitch', { login: false });
    expect((await exchange()).json).toEqual({
      error: 'FEATURE_DISABLED',
      message: 'Feature not enabled: platform:twitch:login',
    });
    await turn('twitch', { enabled: false, login: true });
    expect((await exchange()).json.message).toBe('Feature not enabled: platform:twitch');
    expect((await operator.rest('GET', '/v1/tokens/me')).status).toBe(200);
    await turn('twitch', { enabled: true });
  });

  test.each([
    ['kick', {}, 400, 'Nothing to change was given'],
    ['kick', { login: null }, 400, 'Nothing to change was given'],
    ['spotify', { login: true }, 400, 'spotify is not connected for login'],
    ['shopify', { enabled: false }, 404, 'Provider not found'],
    ['__proto__', { enabled: false }, 404, 'Provider not found'],
  ])('%s with %j is answered %i %s', async (platform, body, status, message) => {
    const { status: was, json } = await turn(platform, body);
    expect([was, json.message]).toEqual([status, message]);
  });

  test.each([
    ['GET', '/v1/admin/providers', 'providers:read'],
    ['PATCH', '/v1/admin/providers/kick', 'providers:edit'],
    ['GET', '/v1/admin/platforms', 'platforms:read'],
    ['PATCH', '/v1/admin/platforms/kick', 'platforms:edit'],
  ])('%s %s asks for %s', async (method, path, permission) => {
    const sent = method === 'GET' ? {} : { body: { enabled: false } };
    expect((await stranger.rest(method, path, sent)).json.message).toBe(`Missing permission: ${permission}`);
    expect((await nobody.rest(method, path, sent)).status).toBe(401);
  });
});
