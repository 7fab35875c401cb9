import { serviceKey, type ServiceKeyEvent } from '../../domain/credentials/service-keys';
import { serviceKeys } from '../../projections/credentials/service-keys';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { ownerAndStranger, sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { eventually, type ApiClient } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const [key_id, account_id, created_by] = [uuid(1), uuid(2), uuid(3)];
const facts = {
  key_id,
  account_id,
  created_by,
  made_with: null,
  key_hash: 'a'.repeat(64),
  key_prefix: 'lm_svc_ab',
  label: 'CI',
  permissions: ['events:read'],
  expires_at: null,
};
const created: ServiceKeyEvent = { type: 'account:service_key_created', ...facts, created_at: now };
const revoked: ServiceKeyEvent = { type: 'account:service_key_revoked', key_id, account_id, revoked_at: now };
const renamed = (label: string): ServiceKeyEvent => ({
  type: 'account:service_key_updated',
  key_id,
  account_id,
  label,
  updated_at: now,
});

describe('a service key', () => {
  const given = decider(serviceKey);
  const create = { type: 'service_key:create', ...facts, now } as const;
  test('is created once, and does not begin expired', () => {
    given([]).when(create).then(created);
    given([created]).when(create).thenFails('KEY_EXISTS');
    given([])
      .when({ ...create, expires_at: now })
      .thenFails('EXPIRY_IN_THE_PAST');
  });
  test('changes its label, and nothing when it is the same', () => {
    given([created]).when({ type: 'service_key:rename', label: 'CI 2', now }).then(renamed('CI 2'));
    given([created]).when({ type: 'service_key:rename', label: 'CI', now }).thenNothing();
  });
  test('is revoked once, and not renamed after', () => {
    given([created]).when({ type: 'service_key:revoke', now }).then(revoked);
    for (const command of [
      { type: 'service_key:revoke', now },
      { type: 'service_key:rename', label: 'x', now },
    ] as const) {
      given([created, revoked]).when(command).thenFails('KEY_NOT_FOUND');
      given([]).when(command).thenFails('KEY_NOT_FOUND');
    }
  });
});

test('the read model forgets who made a key when they leave, and a revoked key whole; a page may come twice', async () => {
  const t: TestDatabase = await testDatabase();
  const others = [uuid(4), uuid(5)].map((id, n) => ({ ...created, key_id: id, key_hash: `${n}`.repeat(64) }));
  const left = { type: 'account:member_removed', account_id, membership_id: uuid(9), user_id: created_by };
  const elsewhere = { ...created, key_id: uuid(6), account_id: uuid(7), key_hash: 'c'.repeat(64) };
  await feed(
    t.db,
    serviceKeys,
    [created, ...others, elsewhere, renamed('1'), renamed('2'), revokedOf(uuid(4)), left],
    2,
  );
  expect(await t.db.query('select id, label, created_by from service_keys order by id')).toEqual([
    { id: key_id, label: '2', created_by: null },
    { id: uuid(5), label: 'CI', created_by: null },
    { id: uuid(6), label: 'CI', created_by },
  ]);
  const dead = await t.db.query('select distinct credential_id from revocations');
  expect(dead).toEqual([{ credential_id: uuid(4) }]);
  await t.drop();
});
const revokedOf = (id: string) => ({ ...revoked, key_id: id });

describe('over HTTP', () => {
  let server: SharedServer;
  let account: MadeAccount;
  let owner: ApiClient;
  let stranger: ApiClient;
  const as = (token: string) => server.client(token);
  const make = async (permissions: string[], api = owner) =>
    (await api.send('POST', '/v1/service-keys', { label: 'CI', permissions })).body.data;
  beforeAll(async () => {
    server = await sharedServer();
    ({ account, owner, stranger } = await ownerAndStranger(server));
    await server.operator.setAdminRole(account.user_id, 'super-admin', true);
  });

  test('takes with it, when it is deleted, the keys and invites that it made', async () => {
    const roles = (await owner.get('/v1/roles')).body.data as { id: string; slug: string; permissions: string[] }[];
    const viewer = roles.find(({ slug }) => slug === 'viewer')!;
    const parent = await make([...new Set(['apikeys:create', 'members:create', ...viewer.permissions])]);
    const [child, other] = [await make(['apikeys:create', 'events:read'], as(parent.key)), await make(['events:read'])];
    const grandchild = await make(['events:read'], as(child.key));
    const path = `/v1/accounts/${account.account_id}/invites`;
    const invite = async (api: ApiClient) => (await api.send('POST', path, { role_id: viewer.id })).body.data.code;
    const [of_key, of_owner] = [await invite(as(parent.key)), await invite(owner)];
    const statuses = async () => [
      ...(await Promise.all(
        [child, grandchild, other].map(async ({ key }) => (await as(key).get('/v1/events')).status),
      )),
      ...(await Promise.all([of_key, of_owner].map(async (code) => (await owner.get(`/v1/invites/${code}`)).status))),
    ];
    expect(await statuses()).toEqual([200, 200, 200, 200, 200]);
    expect((await owner.send('DELETE', `/v1/service-keys/${parent.id}`, undefined)).status).toBe(204);
    await eventually(
      async () => ((await statuses()).join() === '401,401,200,404,200' ? true : undefined),
      'what the key made has ended',
    );
  });

  test('is created, shown once, used as the account and no person, renamed, and gone at once', async () => {
    const { account_id, user_id } = account;
    const made = await owner.send('POST', '/v1/service-keys', {
      label: ' CI ',
      permissions: ['chat:read', 'events:read'],
    });
    expect(made.status).toBe(201);
    const { key, ...service_key } = made.body.data;
    expect(key).toMatch(/^lm_svc_[0-9a-f]{64}$/);
    expect(service_key).toEqual({
      id: expect.any(String),
      account_id,
      created_by: user_id,
      key_prefix: key.slice(0, 9),
      label: 'CI',
      permissions: ['events:read', 'chat:read'],
      created_at: expect.any(String),
      updated_at: service_key.created_at,
      expires_at: null,
      last_used_at: null,
    });
    expect(made.headers.get('location')).toBe(`${server.base_url}/v1/service-keys/${service_key.id}`);
    const listed = await owner.get('/v1/service-keys');
    expect(listed.body.data).toContainEqual(service_key);
    expect(listed.text).not.toContain(key);

    const ci = as(key);
    expect((await ci.get('/v1/tokens/me')).body.data).toEqual({
      permissions: ['events:read', 'chat:read'],
      admin_permissions: [],
      user_permissions: [],
    });
    expect(await ci.get('/v1/api-keys')).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: 'This action requires a logged-in user' },
    });
    expect((await ci.get('/v1/events')).status).toBe(200);
    expect((await as('').get(`/v1/tokens/me?token=${key}`)).status).toBe(401);

    const path = `/v1/service-keys/${service_key.id}`;
    const changed = await owner.send('PATCH', path, { label: 'CI 2', permissions: ['account:delete'] });
    expect(changed.body).toMatchObject({ error: 'VALIDATION_ERROR' });
    const renamed = (await owner.send('PATCH', path, { label: 'CI 2' })).body.data;
    expect(renamed).toMatchObject({
      ...service_key,
      label: 'CI 2',
      updated_at: expect.any(String),
      last_used_at: renamed.last_used_at,
    });
    expect(renamed.updated_at > service_key.updated_at).toBe(true);
    for (const [method, body] of [
      ['PATCH', { label: 'x' }],
      ['DELETE', undefined],
    ] as const) {
      expect(await stranger.send(method, path, body)).toMatchObject({
        status: 404,
        body: { error: 'NOT_FOUND', message: 'Service key not found' },
      });
    }
    expect((await owner.send('DELETE', path, undefined)).status).toBe(204);
    expect((await ci.get('/v1/tokens/me')).status).toBe(401);
    expect((await owner.send('DELETE', path, undefined)).status).toBe(404);
    expect((await owner.get('/v1/service-keys')).text).not.toContain(service_key.id);
  });

  test('the same over GraphQL', async () => {
    const fields = 'id accountId createdBy keyPrefix label permissions createdAt updatedAt expiresAt lastUsedAt';
    const input = '{label: "g", permissions: ["chat:read"], expiresAt: "2999-01-01T00:00:00Z"}';
    const { data } = await owner.gql(
      `mutation { createAccountServiceKey(input: ${input}) { key serviceKey { ${fields} } } }`,
    );
    const { key, serviceKey: made } = data.createAccountServiceKey;
    expect(made).toMatchObject({ label: 'g', expiresAt: '2999-01-01T00:00:00.000Z' });
    expect((await as(key).gql('{ myPermissions }')).data.myPermissions).toEqual(['chat:read']);
    expect((await owner.gql(`{ accountServiceKeys { ${fields} } }`)).data.accountServiceKeys).toContainEqual({
      ...made,
      lastUsedAt: null,
    });
    const renamed = await owner.gql(`mutation { updateAccountServiceKey(id: "${made.id}", label: "h") { label } }`);
    expect(renamed.data.updateAccountServiceKey).toEqual({ label: 'h' });
    const deleted = await owner.gql(`mutation { deleteAccountServiceKey(id: "${made.id}") { success } }`);
    expect(deleted.data.deleteAccountServiceKey).toEqual({ success: true });
  });

  test.each([
    [{ permissions: ['events:read'] }, 400, 'VALIDATION_ERROR', 'label: is required'],
    [{ label: ' ', permissions: ['events:read'] }, 400, 'VALIDATION_ERROR', 'label is required'],
    [{ label: 'k', permissions: [] }, 400, 'VALIDATION_ERROR', 'permissions must name at least one permission'],
    [{ label: 'k', permissions: ['events:*'] }, 400, 'VALIDATION_ERROR', 'Invalid permission: events:*'],
    [{ label: 'k', permissions: ['users:read'] }, 400, 'VALIDATION_ERROR', 'Invalid permission: users:read'],
    [
      { label: 'k', permissions: ['events:read'], expires_at: '2020-01-01T00:00:00Z' },
      400,
      'VALIDATION_ERROR',
      'expires_at cannot be in the past',
    ],
    [
      { label: 'k', permissions: ['events:read'], created_by: uuid(1) },
      400,
      'VALIDATION_ERROR',
      'created_by: is not a member of this request',
    ],
  ])('%j is answered %i %s', async (body, status, error, message) => {
    const answer = await owner.send('POST', '/v1/service-keys', body);
    expect(answer).toMatchObject({ status, body: { error, message } });
  });

  test('nobody gives more than they hold: a key none of its wider kind, a system key what its wildcard covers', async () => {
    const narrow = as((await make(['apikeys:create', 'apikeys:read', 'events:read'])).key);
    const refused = await narrow.send('POST', '/v1/service-keys', { label: 'w', permissions: ['account:delete'] });
    expect(refused).toMatchObject({ status: 403, body: { message: 'Missing permission: account:delete' } });
    const { errors } = await narrow.gql(
      'mutation { createAccountServiceKey(input: {label: "w", permissions: ["chat:read"]}) { key } }',
    );
    expect(errors[0]).toMatchObject({ message: 'Missing permission: chat:read', extensions: { code: 'FORBIDDEN' } });
    expect(await make(['events:read'], narrow)).toMatchObject({ created_by: null, permissions: ['events:read'] });

    const system = (
      await owner.send('POST', '/v1/admin/system-keys', {
        label: 'robot',
        permissions: ['apikeys:create', 'chat:*', '*:*'],
      })
    ).body.data.key;
    const on = { 'x-lumio-account': account.account_id };
    const by = (permissions: string[]) => as(system).send('POST', '/v1/service-keys', { label: 'r', permissions }, on);
    expect((await by(['chat:read', 'chat:ban'])).status).toBe(201);
    expect(await by(['chat:read', 'events:read'])).toMatchObject({
      status: 403,
      body: { message: 'Missing permission: events:read' },
    });
  });

  test("a demoted member's key gives no more than the member holds now, and leaves no way back", async () => {
    const { account_id } = account;
    const { user_id, access_token } = await server.member(account_id, 'administrator');
    const permissions = ['apikeys:create', 'members:create', 'events:read', 'tokens:create'];
    const made = await as(access_token).send('POST', '/v1/api-keys', { label: 'all', permissions });
    const key = as(made.body.data.key);
    await server.operator.setMembership(account_id, user_id, 'viewer');
    const refused = { status: 403, body: { error: 'FORBIDDEN', message: 'Missing permission: apikeys:create' } };
    const wanted = { label: 'back', permissions: ['apikeys:create', 'members:create'] };
    for (const path of ['/v1/service-keys', '/v1/api-keys', '/v1/tokens'])
      expect(await key.send('POST', path, wanted)).toMatchObject(refused);
    const { errors } = await key.gql(
      'mutation { createAccountServiceKey(input: {label: "back", permissions: ["members:create"]}) { key } }',
    );
    expect(errors[0]).toMatchObject({ message: 'Missing permission: members:create' });
    // Permissions of a viewer are still given.
    expect((await key.send('POST', '/v1/service-keys', { label: 'narrow', permissions: ['events:read'] })).status).toBe(
      201,
    );
  });

  test('is known by its id in whatever case', async () => {
    const { id } = await make(['events:read']);
    const path = `/v1/service-keys/${id.toUpperCase()}`;
    expect((await owner.send('PATCH', path, { label: 'Shouted' })).body.data).toMatchObject({ id, label: 'Shouted' });
    const { data } = await owner.gql(`mutation { deleteAccountServiceKey(id: "${id.toUpperCase()}") { success } }`);
    expect(data.deleteAccountServiceKey).toEqual({ success: true });
  });

  test('made by a key that ends, it ends with that key at the latest', async () => {
    const in_hours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
    const expires_at = in_hours(2);
    const permissions = ['apikeys:create', 'events:read'];
    const maker = (await owner.send('POST', '/v1/service-keys', { label: 'CI', permissions, expires_at })).body.data;
    const by_it = (more: object) =>
      as(maker.key).send('POST', '/v1/service-keys', { label: 'x', permissions: ['events:read'], ...more });
    expect((await by_it({})).body.data).toMatchObject({ expires_at });
    const sooner = in_hours(1);
    expect((await by_it({ expires_at: sooner })).body.data).toMatchObject({ expires_at: sooner });
    expect(await by_it({ expires_at: in_hours(3) })).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: 'A key cannot make one that lives longer than itself' },
    });
  });

  test('works on when its maker leaves, and no longer names them', async () => {
    const { account_id } = account;
    const { user_id, access_token } = await server.member(account_id, 'administrator');
    const { key, id, created_by } = await make(['events:read'], as(access_token));
    expect(created_by).toBe(user_id);
    expect((await owner.send('DELETE', `/v1/accounts/${account_id}/members/${user_id}`, undefined)).status).toBe(204);
    const { data } = (await owner.get('/v1/service-keys')).body;
    expect(data.find((one: { id: string }) => one.id === id)).toMatchObject({ created_by: null, label: 'CI' });
    expect((await as(key).get('/v1/tokens/me')).body.data.permissions).toEqual(['events:read']);
  });
});
