import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TestDatabase, testDatabase } from '../../support/database';
import { PATIENT, runLumio, settingsOf, spawnLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';
import { hmac } from '../../support/webhooks';

/** What an operator does to a system of production that nobody can log in to yet. */
describe('lumio admin', () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-admin-'));
  const trovo_secret = randomBytes(16).toString('hex');
  let database: TestDatabase;
  let env: Record<string, string>;
  let server: TestServer;
  /** Somebody with an account, for tests that leave both as they are; every command is a process that has to start. */
  let ada: { user_id: string; account_id: string };

  beforeAll(async () => {
    database = await testDatabase(2);
    env = {
      ...settingsOf(data_dir),
      ...PATIENT,
      LUMIO_ENV: 'production',
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
      LUMIO_WEBHOOKS__TROVO_SECRET: trovo_secret,
    };
    server = await startServer({ embedded: true, env });
    ada = await owner();
  });
  afterAll(async () => {
    await server?.dispose();
    await database?.drop();
    rmSync(data_dir, { recursive: true, force: true });
  });

  /** The command's answer: exactly one line of JSON, and nothing else said. */
  async function admin(...args: string[]): Promise<any> {
    const { code, stdout, stderr } = await runLumio(['admin', ...args], env);
    expect([args, code, stderr]).toEqual([args, 0, '']);
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    return JSON.parse(stdout);
  }
  /** What the command refused, in one line, and its exit code. */
  async function refused(...args: string[]): Promise<[number | null, string]> {
    const { code, stdout, stderr } = await runLumio(['admin', ...args], env);
    expect([args, stdout, stderr.trimEnd().split('\n').length]).toEqual([args, '', 1]);
    return [code, stderr.replace(/^lumio: /, '').trimEnd()];
  }
  const owner = async () => {
    const { user_id } = await admin('create-user', '--name', 'Ada');
    const { account_id } = await admin('create-account', '--owner', user_id, '--name', 'Ada live');
    return { user_id, account_id } as { user_id: string; account_id: string };
  };
  /** Looks twice a second: what is refused counts against this address. */
  async function seldom(holds: () => Promise<boolean>, what: string): Promise<void> {
    await eventually(async () => {
      if (await holds()) return true;
      return sleep(500).then(() => undefined);
    }, what);
  }
  const clientOf = async (user_id: string) =>
    new ApiClient(server.base_url, (await admin('token', '--user', user_id)).access_token);

  test('a token of each kind is made, and one of a resource is ended', async () => {
    const { user_id, account_id } = ada;
    const [resource, of] = [randomUUID(), ['--account', account_id]];
    const until = ['--expires', '2999-01-01T00:00:00Z'];
    const made = (kind: string, ...more: string[]) => admin('token', '--kind', kind, ...of, ...until, ...more);
    const scope = ['--permissions', 'events:read'];
    const meOf = async (token: string) => (await new ApiClient(server.base_url, token).get('/v1/tokens/me')).status;
    const kinds = ['service', 'popout', 'overlay', 'shared', 'extension', 'widget'];
    const tokens = await Promise.all(
      kinds.map((kind) => made(kind, '--user', user_id, '--resource', resource, '--key', 'front', ...scope)),
    );
    expect(await Promise.all(tokens.map(({ token }) => meOf(token)))).toEqual([200, 200, 403, 403, 403, 403]);
    const { id, token } = tokens[5]!;
    expect(await admin('revoke-token', id, ...of)).toEqual({ id, revoked: true });
    await seldom(async () => (await meOf(token)) === 401, 'its end');
    expect(await refused('revoke-token', id, ...of)).toEqual([1, `there is no token ${id} that could be revoked`]);
  });

  test('a system begins: user, account, features, channel, token, and a signed webhook is read with it', async () => {
    const { user_id, account_id } = await owner();
    const channel = ['--account', account_id, '--platform', 'trovo', '--channel-id', '4711'];
    expect(await admin('connect', ...channel)).toEqual({ connection_id: expect.any(String), created: true });
    const token = await admin('token', '--user', user_id);
    expect(token).toMatchObject({ user_id, account_id, access_token: expect.stringMatching(/^lm_eyJ/) });
    const api = new ApiClient(server.base_url, token.access_token);
    expect((await api.get('/v1/events')).body).toMatchObject({ error: 'FEATURE_DISABLED' });
    expect(await admin('grant', '--account', account_id, '--feature', 'feature:events')).toEqual({
      account_id,
      features: { 'feature:events': true },
    });

    expect(await admin('grant', '--account', account_id, '--plan', 'pro')).toEqual({ account_id, plan: 'pro' });
    expect(await admin('grant', '--plan', 'free', '--feature', 'feature:sounds')).toEqual({
      plan: 'free',
      features: ['feature:sounds'],
    });
    expect(await refused('grant', '--account', account_id, '--plan', 'gold')).toEqual([1, 'there is no plan gold']);
    expect((await refused('grant', '--plan', 'free', '--feature', 'system:ideas_hub'))[0]).toBe(2);

    const body = Buffer.from('{"type":"channel.spell","channel_id":"4711","message_id":"m1","data":{"uid":"42"}}');
    const posted = await fetch(`${server.base_url}/v1/webhooks/trovo`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-trovo-signature': hmac('sha256', trovo_secret, body, 'hex') },
      body,
    });
    expect(posted.status).toBe(200);
    const [event] = await eventually(async () => {
      // A node remembers for a second what an account has.
      const { status, body: page } = await api.get('/v1/events');
      return status === 200 && page.data.length > 0 ? page.data : undefined;
    }, 'the webhook');
    expect(event).toMatchObject({ platform: 'trovo', type: 'trovo:spell' });

    const refreshed = await api.send('POST', '/v1/auth/refresh', { refresh_token: token.refresh_token });
    expect(refreshed).toMatchObject({ status: 200, body: { has_account: true } });
  });

  test('a shop is connected with its secret from a file or standard input, and again with another one', async () => {
    const { user_id, account_id } = await owner();
    await admin('grant', '--account', account_id, '--all-features');
    const file = join(data_dir, 'shop-secret');
    const shop = ['connect', '--account', account_id, '--shop', 'Ada.myshopify.com', '--secret-file'];
    const deliver = async (secret: string) => {
      const body = Buffer.from(`{"id":${randomBytes(4).readUInt32BE()}}`);
      const { status } = await fetch(`${server.base_url}/v1/webhooks/shopify`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-shopify-topic': 'orders/create',
          'x-shopify-shop-domain': 'ada.myshopify.com',
          'x-shopify-event-id': randomUUID(),
          'x-shopify-hmac-sha256': hmac('sha256', secret, body, 'base64'),
        },
        body,
      });
      return status;
    };
    writeFileSync(file, 'first\n');
    const first = await admin(...shop, file);
    expect(first.created).toBe(true);
    await seldom(async () => (await deliver('first')) === 200, 'the shop');
    writeFileSync(file, 'second');
    expect(await admin(...shop, file)).toEqual({ connection_id: first.connection_id, created: false });
    await seldom(async () => (await deliver('second')) === 200, 'the new secret');
    expect(await deliver('first')).toBe(401);
    const api = await clientOf(user_id);
    await eventually(async () => {
      const { status, body } = await api.get('/v1/events');
      return status === 200 && body.data.length > 1 ? true : undefined;
    }, 'the orders');

    expect(
      await refused('connect', '--account', ada.account_id, '--shop', 'ada.myshopify.com', '--secret-file', file),
    ).toEqual([1, 'ada.myshopify.com is connected to another account already']);
    const [secrets] = await database.db.query('select count(*)::int as n from connection_secrets');
    expect(secrets!.n).toBe(1);
    expect(await deliver('second')).toBe(200);
    writeFileSync(file, '\n');
    expect(await refused(...shop, file)).toEqual([1, 'the secret must have 1 to 4096 characters']);
  });

  test('an identity logs in as one user, however often and by how many at once it is asked for', async () => {
    const asked = ['create-user', '--name', 'Ada', '--provider', 'kick', '--provider-id', '987654321'];
    const made = await Promise.all([admin(...asked), admin(...asked), admin(...asked)]);
    expect(new Set(made.map(({ user_id }) => user_id)).size).toBe(1);
    expect(made.filter(({ created }) => created)).toHaveLength(1);
    const { user_id } = made[0];
    expect(await admin(...asked, '--id', user_id)).toEqual({ user_id, created: false });
    const other = randomUUID();
    expect(await refused(...asked, '--id', other)).toEqual([1, `kick 987654321 logs in as user ${user_id} already`]);
    // A second identity of a user who is there.
    const trovo = ['create-user', '--name', 'Ada', '--provider', 'trovo', '--provider-id', '42', '--id', user_id];
    expect(await admin(...trovo)).toEqual({ user_id, created: false });
    expect(await admin(...trovo.slice(0, -2))).toEqual({ user_id, created: false });

    const events = await database.db.query(
      `select type, data from domain_events where stream like $1 or stream like 'reservation-login%' order by position`,
      [`user-${user_id}`],
    );
    expect(events.map(({ type }) => type)).toEqual([
      'user:registered',
      'user:login_connected',
      'reservation:made',
      'user:login_connected',
      'reservation:made',
    ]);
    // The id at the provider is personal: only its keyed hash is in events.
    expect(JSON.stringify(events)).not.toContain('987654321');
    const names = await database.db.query('select display_name from profiles where user_id = $1', [user_id]);
    expect(names).toEqual([{ display_name: 'Ada' }]);
    const [{ orphans } = {}] = await database.db.query(
      'select count(*)::int as orphans from profiles where user_id not in (select id from users)',
    );
    expect(orphans).toBe(0);
  });

  test('what is asked for under an id is made once', async () => {
    const [user_id, account_id] = [randomUUID(), randomUUID()];
    const user = ['create-user', '--name', 'Bo', '--id', user_id];
    expect([await admin(...user), await admin(...user)]).toEqual([
      { user_id, created: true },
      { user_id, created: false },
    ]);
    const account = ['create-account', '--owner', user_id, '--name', 'Bo', '--id', account_id];
    expect([await admin(...account), await admin(...account)]).toEqual([
      { account_id, created: true },
      { account_id, created: false },
    ]);
    const channel = ['connect', '--account', account_id, '--platform', 'kick', '--channel-id', '815'];
    const first = await admin(...channel);
    expect(await admin(...channel)).toEqual({ ...first, created: false });
    expect(await refused(...channel.slice(0, -1), '816')).toEqual([
      1,
      `account ${account_id} is connected to another kick channel already`,
    ]);
    expect(await refused(...account.slice(0, 1), '--owner', ada.user_id, '--name', 'Bo', '--id', account_id)).toEqual([
      1,
      `account ${account_id} is there already, and user ${user_id} owns it`,
    ]);
  });

  test('a program of others is registered', async () => {
    const made = ['create-oauth-client', '--name', 'Deck', '--scopes', 'events:read'];
    expect(
      await admin(...made, '--redirect-uri', 'https://a.example/', '--redirect-uri', 'https://b.example/'),
    ).toEqual({
      client_id: expect.any(String),
      client_secret: expect.stringMatching(/^lm_oauth_/),
    });
    expect(await refused(...made, '--redirect-uri', 'http://a.example/')).toEqual([
      1,
      'invalid redirect URI: http://a.example/',
    ]);
  });

  test('a lost owner is replaced, and holds nothing of the account any more', async () => {
    const { user_id, account_id } = await owner();
    const { user_id: heir } = await admin('create-user', '--name', 'Heir');
    const replace = ['replace-owner', '--account', account_id, '--user', heir];
    expect(await admin(...replace)).toEqual({ account_id, owner_id: heir, former_owner_id: user_id });
    expect(await admin(...replace)).toEqual({ account_id, owner_id: heir, former_owner_id: heir });
    const held = async () => {
      const { access_token } = await admin('token', '--user', heir, '--account', account_id);
      const { body } = await new ApiClient(server.base_url, access_token).get('/v1/tokens/me');
      return body.data.permissions as string[];
    };
    expect(await held()).toContain('account:delete');
    expect(await refused('token', '--user', user_id, '--account', account_id)).toEqual([
      1,
      `user ${user_id} is no member of account ${account_id}`,
    ]);
    expect(await admin(...replace.slice(0, -1), user_id, '--former-role', 'viewer')).toMatchObject({
      owner_id: user_id,
    });
    expect(await held()).toHaveLength(9);
  });

  test('a system key works with its grants until it is revoked', async () => {
    const { account_id } = ada;
    const [made] = await Promise.all([
      admin('create-system-key', '--label', 'worker', '--permissions', 'events:*,connections:read'),
      admin('grant', '--account', account_id, '--all-features'),
    ]);
    expect(made).toEqual({
      key_id: expect.any(String),
      key: expect.stringMatching(/^lm_sys_/),
      key_prefix: expect.any(String),
    });
    const headers = { authorization: `Bearer ${made.key}`, 'x-lumio-account': account_id };
    const status = async () => (await fetch(`${server.base_url}/v1/events`, { headers })).status;
    expect(await status()).toBe(200);
    const again = await runLumio(['admin', 'create-system-key', '--label', 'again', '--permissions', 'events:*'], env);
    expect(again.stderr).toMatch(
      new RegExp(`^lumio: other system keys:\\n[^]*${made.key_id} ${made.key_prefix}… worker`),
    );
    expect(await admin('revoke-system-key', made.key_id)).toEqual({ key_id: made.key_id, revoked: true });
    await seldom(async () => (await status()) === 401, 'the end of the key');
    expect(await refused('revoke-system-key', made.key_id)).toEqual([
      1,
      `there is no system key ${made.key_id} that could be revoked`,
    ]);
  });

  test('features, roles and admin roles are given and taken', async () => {
    const { user_id, account_id } = await owner();
    const flags = ['grant', '--account', account_id, '--feature'];
    await admin(...flags, 'feature:events', '--feature', 'feature:overlays=off');
    expect(await admin(...flags, 'feature:overlays=default')).toEqual({
      account_id,
      features: { 'feature:events': true },
    });

    const { user_id: guest } = await admin('create-user', '--name', 'Guest');
    const role = (name: string) => admin('grant', '--account', account_id, '--user', guest, '--role', name);
    expect(await role('viewer')).toEqual({ account_id, user_id: guest, role: 'viewer' });
    const permissions = async () => {
      const token = await admin('token', '--user', guest, '--account', account_id);
      return (await new ApiClient(server.base_url, token.access_token).get('/v1/tokens/me')).body.data;
    };
    expect((await permissions()).permissions).not.toContain('events:create');
    await role('moderator');
    expect((await permissions()).permissions).toContain('events:create');
    const client = await clientOf(user_id);
    const shown = async () => (await client.get('/v1/events')).status;
    expect(await shown()).toBe(200);
    const off = await admin('switch-feature', 'feature:events', 'off');
    expect(off).toEqual({ feature: 'feature:events', enabled: false });
    await seldom(async () => (await shown()) === 403, 'the feature to be off for everyone');
    await admin('switch-feature', 'feature:events', 'on');
    await seldom(async () => (await shown()) === 200, 'the feature to be on again');

    await admin('grant', '--user', guest, '--admin-role', 'super-admin');
    expect((await permissions()).admin_permissions).toContain('admin:access');
    expect(await admin('grant', '--user', guest, '--admin-role', 'super-admin', '--take')).toEqual({
      user_id: guest,
      admin_roles: [],
    });
    await role('none');
    expect(await refused('token', '--user', guest, '--account', account_id)).toEqual([
      1,
      `user ${guest} is no member of account ${account_id}`,
    ]);
    expect(await refused('grant', '--account', account_id, '--user', user_id, '--role', 'viewer')).toEqual([
      1,
      `user ${user_id} owns account ${account_id} and keeps that role`,
    ]);
    const second = await admin('create-account', '--owner', user_id, '--name', 'Second');
    expect(await refused('token', '--user', user_id)).toEqual([1, expect.stringContaining(second.account_id)]);
  });

  test('who and what is not there is said in one line', async () => {
    const nobody = randomUUID();
    const there_is_no = (what: string) => [1, `there is no ${what} ${nobody}`];
    const asked: [string, ...string[]][] = [
      ['user', 'create-account', '--owner', nobody, '--name', 'x'],
      ['user', 'token', '--user', nobody],
      ['user', 'grant', '--user', nobody, '--admin-role', 'super-admin'],
      ['account', 'grant', '--account', nobody, '--all-features'],
      ['account', 'connect', '--account', nobody, '--platform', 'kick', '--channel-id', '1'],
    ];
    expect(await Promise.all(asked.map(([, ...args]) => refused(...args)))).toEqual(
      asked.map(([what]) => there_is_no(what)),
    );
  });

  test.each([
    [['create-user'], '--name'],
    [['create-user', '--name', ' '], 'characters'],
    [
      ['create-user', '--name', 'x', '--provider', 'myspace', '--provider-id', '1'],
      'twitch, google, kick, trovo, discord',
    ],
    [['create-user', '--name', 'x', '--provider', 'kick'], 'come together'],
    [['create-account', '--owner', 'x', '--name', 'x'], 'UUID'],
    [['connect', '--account', randomUUID()], '--platform'],
    [['connect', '--account', randomUUID(), '--platform', 'kick'], '--channel-id'],
    [['connect', '--account', randomUUID(), '--shop', 'x'], '--secret-file'],
    [
      ['connect', '--account', randomUUID(), '--platform', 'kick', '--channel-id', '1', '--secret-file', '-'],
      'no secret',
    ],
    [['create-system-key', '--label', 'x', '--permissions', 'events:fly'], 'invalid permission: events:fly'],
    [['create-oauth-client', '--name', 'x', '--scopes', 'events:read', '--grant-types', 'magic'], 'magic'],
    [['create-system-key', '--label', 'x', '--permissions', '*'], 'invalid permission: *'],
    [['grant', '--account', randomUUID()], 'name one of'],
    [['grant', '--account', randomUUID(), '--feature', 'feature:nothing'], 'unknown feature feature:nothing'],
    [['grant', '--account', randomUUID(), '--feature', 'feature:events=maybe'], '=default'],
    [['grant', '--account', randomUUID(), '--role', 'owner'], 'administrator'],
    [['grant', '--user', randomUUID(), '--admin-role', 'king'], 'super-admin'],
    [['token'], '--user'],
    [['token', '--kind', 'popout', '--user', randomUUID()], '--account'],
    [['token', '--kind', 'service', '--account', randomUUID(), '--permissions', 'events:*'], 'permission: events:*'],
    [['token', '--kind', 'shared', '--account', randomUUID(), '--resource', randomUUID()], '--expires'],
  ])('%j is wrong usage', async (args, word) => {
    expect(await refused(...args)).toEqual([2, expect.stringContaining(word)]);
  });
});

test('beside a running server on its own database, and on the stopped one’s folder', async () => {
  const server = await startServer({ embedded: true, env: { LUMIO_ENV: 'production' } });
  try {
    const env = { ...settingsOf(server.data_dir), LUMIO_ENV: 'production' };
    const runAs = async (patience: Record<string, string>, args: string[]) => {
      const { code, stdout, stderr } = await runLumio(['admin', ...args], { ...env, ...patience });
      expect([args, code]).toEqual([args, 0]);
      return { made: JSON.parse(stdout), stderr };
    };
    const run = (...args: string[]) => runAs({}, args);
    const beside = await runAs(PATIENT, ['create-user', '--name', 'Ada']);
    expect(beside.stderr).toBe('');
    const token = await run('token', '--user', beside.made.user_id);
    expect((await new ApiClient(server.base_url, token.made.access_token).get('/v1/tokens/me')).status).toBe(200);

    await server.stop();
    const alone = await run('create-user', '--name', 'Bo');
    expect(alone.stderr).toMatch(/^lumio: it is stored; queries show it when a projector has caught up/);
    const restarted = await server.restart();
    const later = await run('token', '--user', alone.made.user_id);
    expect((await new ApiClient(restarted.base_url, later.made.access_token).get('/v1/tokens/me')).status).toBe(200);
    await restarted.stop();
  } finally {
    await server.dispose();
  }
});

test('beside a server that is just starting', async () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-starting-'));
  const env = { ...settingsOf(data_dir), LUMIO_ENV: 'production' };
  const server = spawnLumio(['start'], env);
  const ended = new Promise<number | null>((done) => server.once('close', done));
  server.stdout.resume();
  server.stderr.resume();
  try {
    await eventually(async () => (existsSync(join(data_dir, 'lumio.lock')) ? true : undefined), 'the start to begin');
    const { code, stdout } = await runLumio(['admin', 'create-user', '--name', 'Ada'], env);
    expect([code, JSON.parse(stdout)]).toEqual([0, { user_id: expect.any(String), created: true }]);
    server.kill('SIGTERM');
    expect(await ended).toBe(0);
  } finally {
    if (server.exitCode === null && server.signalCode === null) server.kill('SIGKILL');
    await ended;
    rmSync(data_dir, { recursive: true, force: true });
  }
});
