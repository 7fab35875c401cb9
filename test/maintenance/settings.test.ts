import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SettingsError } from '../../kernel/settings/error';
import { loadSettings } from '../../cli/runtime/load-settings';

describe('settings', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'lumio-settings-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const load = (env: Record<string, string>, file?: unknown) => {
    if (file !== undefined) writeFileSync(join(cwd, 'lumio.config.json'), JSON.stringify(file));
    return loadSettings({ env, cwd });
  };
  const refusal = (env: Record<string, string>, file?: unknown) => {
    try {
      load(env, file);
    } catch (error) {
      if (error instanceof SettingsError) return error.message;
      throw error;
    }
    throw new Error('the settings were accepted');
  };

  test('nothing given: development on loopback with the documented defaults', () => {
    const settings = load({ PATH: '/bin' });
    expect(settings).toMatchObject({
      env: 'development',
      host: '127.0.0.1',
      port: 7070,
      data_dir: join(cwd, '.lumio'),
      event_store: { url: 'postgres' },
      graphql: { playground: true },
      webhooks: { require_signatures: true, kick_secret: '' },
      auth: { ws_token_expiration: 900_000 },
    });
  });

  test('in development an address of this machine that is named for a vendor may be called', () => {
    const { outgoing } = load({});
    expect(outgoing.allow_loopback).toBe(false);
    for (const url of ['ws://localhost:8080/ws', 'ws://127.0.0.1:8080/ws', 'ws://10.0.0.7/ws', 'ws://mock:8080/ws'])
      expect([url, load({ LUMIO_TWITCH__EVENTSUB_URL: url }).outgoing]).toEqual([url, { allow_loopback: true }]);
    const refused = { LUMIO_TWITCH__API_URL: 'http://127.0.0.1:1', LUMIO_OUTGOING__ALLOW_LOOPBACK: 'false' };
    expect(load(refused).outgoing).toEqual({ allow_loopback: false });
    expect(load({ LUMIO_TWITCH__API_URL: 'https://api.example.com' }).outgoing).toEqual({ allow_loopback: false });
  });

  test.each([
    ['LUMIO_TWITCH__ID_URL', 'http://id.twitch.tv', 'must be https, and no private address'],
    ['LUMIO_TWITCH__API_URL', 'https://10.0.0.7', 'must be https, and no private address'],
    ['LUMIO_GOOGLE__API_URL', 'https://[::1]:8080', 'must be https, and no private address'],
    ['LUMIO_KICK__ID_URL', 'https://2130706433', 'must be https, and no private address'],
    ['LUMIO_DISCORD__API_URL', 'https://vault.internal', 'must be https, and no private address'],
    ['LUMIO_TROVO__API_URL', 'https://localhost', 'must be https, and no private address'],
    ['LUMIO_GOOGLE__TOKEN_URL', 'https://172.16.0.1', 'must be https, and no private address'],
    ['LUMIO_SPOTIFY__ID_URL', 'http://127.0.0.1:1', 'must be https, and no private address'],
    ['LUMIO_PAYPAL__API_URL', 'https://192.168.0.9', 'must be https, and no private address'],
    ['LUMIO_AUTH__DEVELOPMENT_LOGINS', 'true', 'lets anybody be anybody'],
    ['LUMIO_PAYMENTS__ALLOW_UNSIGNED_WEBHOOKS', 'true', 'lets anybody tell of payments'],
  ])('production refuses what is for a machine of development: %s', (name, value, why) => {
    const dotted = name.slice('LUMIO_'.length).toLowerCase().replace('__', '.');
    expect(refusal({ LUMIO_ENV: 'production', [name]: value })).toBe(`${name} (${dotted}): ${why}`);
    expect(load({ LUMIO_ENV: 'development', [name]: value })).toMatchObject({ env: 'development' });
  });

  test.each([
    [{}, undefined],
    [{ LUMIO_PORT: '0' }, 0],
    [{ LUMIO_PORT: '7071' }, 0],
    [{ LUMIO_PORT: '0', LUMIO_METRICS__PORT: '9100' }, 9100],
  ])('%j leaves the metrics on port %p', (env, port) => {
    expect(load(env as Record<string, string>).metrics.port).toBe(port);
  });

  test('production turns explorer and documents off', () => {
    const settings = load({ LUMIO_ENV: 'production' });
    expect(settings.graphql.playground).toBeUndefined();
    expect(settings.docs).toEqual({});
  });

  test('dotted keys come from the environment, which wins over the file', () => {
    const settings = load(
      {
        LUMIO_WEBHOOKS__KICK_SECRET: 'from env',
        LUMIO_AUTH__WS_TOKEN_EXPIRATION: '10m',
        LUMIO_ROLES: 'api,ingest,projector,realtime,worker',
      },
      { webhooks: { kick_secret: 'from file', trovo_secret: 'kept' } },
    );
    expect(settings.webhooks).toMatchObject({ kick_secret: 'from env', trovo_secret: 'kept' });
    expect(settings.auth.ws_token_expiration).toBe(600_000);
    expect(settings.roles).toHaveLength(5);
  });

  test.each([
    [{ LUMIO_WEBHOKS__KICK_SECRET: 'x' }, 'LUMIO_WEBHOKS__KICK_SECRET (webhoks.kick_secret): unknown setting'],
    [{ LUMIO_WEBHOOKS__KICK_SECRETS: 'x' }, 'LUMIO_WEBHOOKS__KICK_SECRETS (webhooks.kick_secrets): unknown setting'],
    [{ LUMIO_PORT: '70700' }, /^LUMIO_PORT \(port\): /],
    [{ LUMIO_PORT: 'http' }, /^LUMIO_PORT \(port\): /],
    [{ LUMIO_PORT__X: '1', LUMIO_ENV: 'development' }, /^LUMIO_PORT__X \(port\.x\): /],
    [{ LUMIO_HOST__X: '1' }, /^LUMIO_HOST__X \(host\.x\): /],
    [{ LUMIO_DATA_DIR: '' }, /^LUMIO_DATA_DIR \(data_dir\): /],
    [{ LUMIO_PUBLIC_URL: 'localhost:7070' }, 'LUMIO_PUBLIC_URL (public_url): must be an http or https URL'],
    [{ LUMIO_ALLOWED_ORIGINS: 'https://a.example,app.example' }, /^LUMIO_ALLOWED_ORIGINS \(allowed_origins\): /],
    [
      { LUMIO_HOSTS__WEB: 'https://app.example/connections' },
      /^LUMIO_HOSTS__WEB \(hosts\.web\): must be an address without/,
    ],
    [{ LUMIO_TRUSTED_PROXIES: 'proxy' }, /^LUMIO_TRUSTED_PROXIES \(trusted_proxies\): /],
    [{ LUMIO_BLOBS__URL: 's3://host/bucket' }, /^LUMIO_BLOBS__URL \(blobs\.url\): /],
    [{ LUMIO_ENV: 'staging' }, /^LUMIO_ENV \(env\): /],
    [{ LUMIO_AUTH__WS_TOKEN_EXPIRATION: 'soon' }, /^LUMIO_AUTH__WS_TOKEN_EXPIRATION .*whole seconds/],
    [{ LUMIO_ROLES: 'api,cook' }, /^LUMIO_ROLES \(roles\): /],
    [{ LUMIO_HOST: '0.0.0.0' }, /^LUMIO_ENV: must be set/],
    [{ LUMIO_DATABASE__URL: 'postgresql://db/lumio' }, /^LUMIO_SECRETS__KEYS /],
    [{ LUMIO_ROLES: 'api' }, /^LUMIO_REDIS__URL /],
    [{ LUMIO_SECURITY__CONTACT: 'mailto:a@b.example' }, /^LUMIO_SECURITY__CONTACT, .* both, or neither$/],
    [{ LUMIO_SECURITY__CONTACT: 'a@b.example' }, /^LUMIO_SECURITY__CONTACT \(security\.contact\): must be a mailto:/],
    [{ LUMIO_SECURITY__EXPIRES: 'soon' }, /^LUMIO_SECURITY__EXPIRES \(security\.expires\): must be a time like/],
  ])('%p is refused in one line that names the key', (env, message) => {
    const line = refusal(env as unknown as Record<string, string>);
    expect(line).toMatch(message);
    expect(line).not.toContain('\n');
  });

  test.each([
    ...[
      'https://a.example/',
      'file://*',
      'file://host',
      'file:///',
      'NULL',
      'https://*.example',
      'https://a@b.example',
    ],
    ...['https://a.example:99999', 'wss://a.example', 'https://', 'https://a b.example', 'https://a.example\\x'],
  ])('the origin %s, which no page has, is refused', (origin) =>
    expect(refusal({ LUMIO_ALLOWED_ORIGINS: `*,${origin}` })).toMatch(
      /^LUMIO_ALLOWED_ORIGINS \(allowed_origins.*\): must be \*, null, file:\/\/ or an origin without a path/,
    ),
  );

  test('origins are read in the spelling that browsers send', () => {
    const origins =
      '*, null, file://, HTTPS://App.Example:443, http://a.example:8080, capacitor://LocalHost, https://bü.example';
    expect(load({ LUMIO_ALLOWED_ORIGINS: origins }).allowed_origins).toEqual([
      ...['*', 'null', 'file://', 'https://app.example', 'http://a.example:8080', 'capacitor://localhost'],
      'https://xn--b-eha.example',
    ]);
  });

  test('the file takes dotted keys as well as nested ones', () => {
    const file = {
      'webhooks.kick_secret': 'dotted',
      webhooks: { trovo_secret: 'nested' },
      auth: { ws_token_expiration: '5m' },
    };
    expect(load({}, file)).toMatchObject({
      webhooks: { kick_secret: 'dotted', trovo_secret: 'nested' },
      auth: { ws_token_expiration: 300_000 },
    });
    expect(refusal({}, { 'webhooks.kick_secrets': 'x' })).toBe(
      'LUMIO_WEBHOOKS__KICK_SECRETS (webhooks.kick_secrets): unknown setting',
    );
  });

  test('a start that is refused leaves nothing in the data folder', () => {
    const development = () => {
      throw new Error('nothing may be made yet');
    };
    expect(() => loadSettings({ env: { LUMIO_PORT: 'http' }, cwd, development })).toThrow(SettingsError);
  });

  test('a file that is no JSON object is refused', () => {
    expect(refusal({}, [1])).toBe('lumio.config.json: must be a JSON object');
    writeFileSync(join(cwd, 'lumio.config.json'), '{');
    expect(refusal({})).toMatch(/^lumio\.config\.json: not valid JSON/);
  });
});
