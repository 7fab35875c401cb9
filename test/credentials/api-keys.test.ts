import { apiKey, type ApiKeyEvent } from '../../domain/credentials/api-keys';
import { apiKeys } from '../../projections/credentials/api-keys';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';

const now = '2026-01-02T03:04:05.000Z';
const [key_id, account_id, user_id] = [uuid(1), uuid(2), uuid(3)];
const facts = {
  key_id,
  account_id,
  user_id,
  key_hash: 'a'.repeat(64),
  key_prefix: 'lm_usr_ab',
  label: 'Bot',
  permissions: ['events:read'],
  expires_at: null,
};
const created: ApiKeyEvent = { type: 'api_key:created', ...facts, created_at: now };
const revoked: ApiKeyEvent = { type: 'api_key:revoked', key_id, account_id, revoked_at: now };

describe('a key', () => {
  const given = decider(apiKey);
  test('is created', () =>
    given([])
      .when({ type: 'api_key:create', ...facts, now })
      .then(created));
  test('is created once', () =>
    given([created])
      .when({ type: 'api_key:create', ...facts, now })
      .thenFails('KEY_EXISTS'));
  test('does not begin expired', () =>
    given([])
      .when({ type: 'api_key:create', ...facts, expires_at: now, now })
      .thenFails('EXPIRY_IN_THE_PAST'));
  test('changes its label, and nothing when it is the same', () => {
    given([created])
      .when({ type: 'api_key:rename', label: 'Bot 2', now })
      .then({ type: 'api_key:renamed', key_id, account_id, label: 'Bot 2', renamed_at: now });
    given([created]).when({ type: 'api_key:rename', label: 'Bot', now }).thenNothing();
  });
  test('is revoked once, and not renamed after', () => {
    given([created]).when({ type: 'api_key:revoke', now }).then(revoked);
    given([created, revoked]).when({ type: 'api_key:revoke', now }).thenFails('KEY_NOT_FOUND');
    given([created, revoked]).when({ type: 'api_key:rename', label: 'x', now }).thenFails('KEY_NOT_FOUND');
    given([]).when({ type: 'api_key:revoke', now }).thenFails('KEY_NOT_FOUND');
  });
});

describe('the read model', () => {
  let t: TestDatabase;
  beforeAll(async () => void (t = await testDatabase()));
  afterAll(() => t.drop());

  test('shows the same rows when a page comes twice', async () => {
    const other = { ...created, key_id: uuid(4), key_hash: 'b'.repeat(64) };
    const renamed = (label: string) => ({ type: 'api_key:renamed', key_id, account_id, label, renamed_at: now });
    const page = [created, other, renamed('one'), renamed('two'), { ...revoked, key_id: uuid(4) }];
    await feed(t.db, apiKeys, page, 2);
    expect(await t.db.query('select id, label, permissions, expires_at from api_keys')).toEqual([
      { id: key_id, label: 'two', permissions: ['events:read'], expires_at: null },
    ]);
    expect((await t.db.query('select 1 from revocations where credential_id = $1', [uuid(4)])).length).toBeGreaterThan(
      0,
    );
  });

  test('keeps nothing of a member who was removed', async () => {
    await feed(
      t.db,
      apiKeys,
      [created, { type: 'account:member_removed', account_id, membership_id: uuid(9), user_id }],
      2,
    );
    expect(await t.db.query('select 1 from api_keys')).toEqual([]);
  });
});

describe('over HTTP', () => {
  let server: SharedServer;
  let me: MadeAccount;
  let other: MadeAccount;
  beforeAll(async () => {
    server = await sharedServer();
    [me, other] = [await server.account(), await server.account()];
  });

  async function call(method: string, path: string, token: string | null, body?: unknown) {
    const response = await fetch(`${server.base_url}${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    return { status: response.status, body: text === '' ? null : JSON.parse(text), headers: response.headers };
  }
  const owner = () => me.access_token;
  const gql = async (query: string, token = owner()) => (await call('POST', '/v1/gql', token, { query })).body;

  test('is created, shown once, used, renamed, and gone at once when deleted', async () => {
    const made = await call('POST', '/v1/api-keys', owner(), {
      label: 'Bot',
      permissions: ['events:read'],
      expires_at: null,
    });
    expect(made.status).toBe(201);
    // Spec doc2 §2.5: REST shows the key among the record's members.
    const { key, ...api_key } = made.body.data;
    expect(key).toMatch(/^lm_usr_[0-9a-f]{64}$/);
    expect(api_key).toEqual({
      id: expect.any(String),
      user_id: me.user_id,
      account_id: me.account_id,
      label: 'Bot',
      permissions: ['events:read'],
      key_prefix: key.slice(0, 9),
      created_at: expect.any(String),
      expires_at: null,
      last_used_at: null,
    });

    const listed = await call('GET', '/v1/api-keys', owner());
    expect(listed.body.data.find((one: { id: string }) => one.id === api_key.id)).toEqual(api_key);
    expect(JSON.stringify(listed.body)).not.toContain(key);
    const at = `${server.base_url}/v1/api-keys/${api_key.id}`;
    expect([made.headers.get('location'), made.body._links]).toEqual([at, { self: at }]);
    const self = `${server.base_url}/v1/api-keys`;
    expect(listed.body._links).toEqual({ self, first: self, last: self });

    const mine = await call('GET', '/v1/tokens/me', key);
    expect(mine.body.data).toEqual({ permissions: ['events:read'], admin_permissions: [], user_permissions: [] });
    expect(await call('GET', '/v1/api-keys', key)).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: 'Missing permission: apikeys:read' },
    });

    const renamed = await call('PATCH', `/v1/api-keys/${api_key.id}`, owner(), { label: ' Bot 2 ' });
    expect(renamed.body.data).toMatchObject({
      ...api_key,
      label: 'Bot 2',
      last_used_at: renamed.body.data.last_used_at,
    });
    const foreign = await call('PATCH', `/v1/api-keys/${api_key.id}`, other.access_token, {
      label: 'x',
    });
    expect(foreign).toMatchObject({ status: 404, body: { error: 'NOT_FOUND' } });

    expect((await call('DELETE', `/v1/api-keys/${api_key.id}`, owner())).status).toBe(204);
    expect((await call('GET', '/v1/tokens/me', key)).status).toBe(401);
    expect((await call('DELETE', `/v1/api-keys/${api_key.id}`, owner())).status).toBe(404);
  });

  test.each([
    [{ permissions: ['events:read'] }, 400, 'VALIDATION_ERROR'],
    [{ label: '  ', permissions: ['events:read'] }, 400, 'VALIDATION_ERROR'],
    [{ label: 'k', permissions: ['events:*'] }, 400, 'VALIDATION_ERROR'],
    [{ label: 'k', permissions: ['nothing:real'] }, 400, 'VALIDATION_ERROR'],
    [{ label: 'k', permissions: ['events:read'], expires_at: '2020-01-01T00:00:00Z' }, 400, 'VALIDATION_ERROR'],
    [{ label: 'k', permissions: ['events:read'], expires_at: 'soon' }, 400, 'VALIDATION_ERROR'],
  ])('%j is answered %i %s', async (body, status, error) => {
    expect(await call('POST', '/v1/api-keys', owner(), body)).toMatchObject({ status, body: { error } });
  });

  test('a rule with a text of its own is answered with exactly that, on either protocol', async () => {
    const blank = await call('POST', '/v1/api-keys', owner(), { label: ' ', permissions: ['events:read'] });
    expect(blank.body).toEqual({
      error: 'VALIDATION_ERROR',
      message: 'label is required',
      details: { fields: [{ path: 'label', message: 'label is required' }] },
    });
    const { errors } = await gql(
      'mutation { createUserApiKey(input: {label: " ", permissions: ["events:read"]}) { key } }',
    );
    expect(errors[0]).toMatchObject({ message: 'label is required', extensions: { code: 'VALIDATION_ERROR' } });
    const missing = await call('POST', '/v1/api-keys', owner(), { permissions: ['events:read'] });
    expect(missing.body.message).toBe('label: is required');
  });

  test('grants no more than its creator holds, on either protocol', async () => {
    const narrow = await call('POST', '/v1/api-keys', owner(), {
      label: 'n',
      permissions: ['apikeys:create', 'events:read'],
    });
    const key = narrow.body.data.key;
    const refused = { label: 'wider', permissions: ['events:read', 'account:delete'] };
    expect(await call('POST', '/v1/api-keys', key, refused)).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: 'Missing permission: account:delete' },
    });
    const { errors } = await gql(
      'mutation { createUserApiKey(input: {label: "w", permissions: ["account:delete"]}) { key } }',
      key,
    );
    expect(errors[0]).toMatchObject({
      message: 'Missing permission: account:delete',
      extensions: { code: 'FORBIDDEN' },
    });
  });

  test('the same over GraphQL', async () => {
    const { data } = await gql(
      'mutation { createUserApiKey(input: {label: "g", permissions: ["chat:read"]}) { key apiKey { id userId accountId keyPrefix label permissions createdAt expiresAt lastUsedAt } } }',
    );
    const { key, apiKey: made } = data.createUserApiKey;
    expect(made).toMatchObject({
      userId: me.user_id,
      accountId: me.account_id,
      label: 'g',
    });
    expect((await gql('{ myPermissions }', key)).data.myPermissions).toEqual(['chat:read']);
    expect((await gql('{ userApiKeys { id } }')).data.userApiKeys).toContainEqual({ id: made.id });
    const renamed = await gql(`mutation { updateUserApiKey(id: "${made.id}", label: "h") { label } }`);
    expect(renamed.data.updateUserApiKey).toEqual({ label: 'h' });
    const deleted = await gql(`mutation { deleteUserApiKey(id: "${made.id}") { success } }`);
    expect(deleted.data.deleteUserApiKey).toEqual({ success: true });
  });

  test('sessions mint ws tokens, end, and refresh once per token', async () => {
    const session = () => server.session(me.user_id, me.account_id);
    const { refresh_token } = await session();
    const first = await call('POST', '/v1/auth/refresh', null, { refresh_token });
    expect(first).toMatchObject({ status: 200, body: { is_new_user: false, has_account: true } });
    const ws = await call('POST', '/v1/auth/ws-token', first.body.token);
    expect(ws.body.data.ws_token).toMatch(/^lm_eyJ/);
    expect((await call('GET', '/v1/tokens/me', ws.body.data.ws_token)).status).toBe(401);
    const again = await call('POST', '/v1/auth/refresh', null, { refresh_token });
    expect(again).toMatchObject({ status: 401, body: { error: 'UNAUTHORIZED' } });
    expect(again.headers.get('www-authenticate')).toBe(
      'Bearer error="invalid_token", error_description="Invalid or expired refresh token"',
    );
    // Whoever reuses a token may have stolen it: its session is over.
    expect((await call('GET', '/v1/tokens/me', first.body.token)).status).toBe(401);

    const second = await session();
    const out = await call('POST', '/v1/auth/logout', null, { refresh_token: second.refresh_token });
    expect(out.body).toEqual({ success: true });
    expect((await call('GET', '/v1/tokens/me', second.access_token)).status).toBe(401);
  });

  test('the system key lists what it matches, never a wildcard', async () => {
    const { body } = await call('GET', '/v1/tokens/me', server.credentials.system_key);
    expect(body.data.permissions).toHaveLength(123);
    expect(body.data.permissions.join()).not.toContain('*');
  });

  test('the public key checks tokens, and nothing private is shown', async () => {
    const { status, body } = await call('GET', '/v1/.well-known/jwks.json', null);
    expect(status).toBe(200);
    const header = JSON.parse(Buffer.from(owner().slice(3).split('.')[0]!, 'base64url').toString());
    expect(body.keys).toEqual([
      { kid: header.kid, kty: 'OKP', crv: 'Ed25519', x: expect.any(String), alg: 'EdDSA', use: 'sig' },
    ]);
  });
});
