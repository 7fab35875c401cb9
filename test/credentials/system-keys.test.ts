import { sharedServer, type SharedServer } from '../support/shared-server';
import type { ApiClient } from '../support/vendor-cloud';

let server: SharedServer;
let admin: ApiClient;
const as = (token: string) => server.client(token);
const make = (permissions: string[], api = admin, label = 'robot') =>
  api.send('POST', '/v1/admin/system-keys', { label, permissions });
beforeAll(async () => {
  server = await sharedServer();
  const { user_id, access_token } = await server.account();
  await server.operator.setAdminRole(user_id, 'super-admin', true);
  admin = as(access_token);
});

test('a key is made, shown once, listed with its use, and gone at once', async () => {
  const made = await make(['chat:*', 'events:read']);
  expect(made.status).toBe(201);
  const { key, ...record } = made.body.data;
  expect(key).toMatch(/^lm_sys_[0-9a-f]{64}$/);
  expect(record).toEqual({
    id: expect.any(String),
    key_prefix: key.slice(0, 9),
    label: 'robot',
    permissions: ['chat:*', 'events:read'],
    is_system: true,
    created_at: expect.any(String),
    last_used_at: null,
  });
  const listed = await admin.get('/v1/admin/system-keys');
  expect(listed.body.data[0]).toEqual(record);
  expect(listed.text).not.toContain(key);
  const mine = (await as(key).get('/v1/tokens/me')).body.data;
  expect([mine.permissions.filter((name: string) => !name.startsWith('chat:')), mine.admin_permissions]).toEqual([
    ['events:read'],
    [],
  ]);
  const path = `/v1/admin/system-keys/${record.id}`;
  const { last_used_at: _used, ...still } = record;
  expect((await admin.get(path)).body.data).toMatchObject(still);
  expect((await admin.get('/v1/admin/system-keys?search=no such label')).body._meta.total).toBe(0);
  expect((await admin.send('DELETE', path, undefined)).status).toBe(204);
  expect((await admin.get(path)).body).toEqual({ error: 'NOT_FOUND', message: 'System key not found' });
  expect((await as(key).get('/v1/tokens/me')).status).toBe(401);
  expect(await admin.send('DELETE', path, undefined)).toMatchObject({
    status: 404,
    body: { message: 'System key not found' },
  });
});

test('the same over GraphQL', async () => {
  const fields = 'id keyPrefix label permissions isSystem createdAt lastUsedAt';
  const { data } = await admin.gql(
    `mutation { createSystemKey(input: {label: "g", permissions: ["*:*"]}) { key systemKey { ${fields} } } }`,
  );
  const { key, systemKey } = data.createSystemKey;
  expect((await as(key).gql('{ myPermissions }')).data.myPermissions).toEqual([]);
  const { systemKeys } = (await admin.gql(`{ systemKeys { total items { ${fields} } } }`)).data;
  expect(systemKeys.items).toContainEqual(systemKey);
  const deleted = await admin.gql(`mutation { deleteSystemKey(id: "${systemKey.id}") { success } }`);
  expect(deleted.data.deleteSystemKey).toEqual({ success: true });
});

test.each(['robots:read', 'chat:**', 'nothing:*', 'chat', ''])('%j is no permission', async (name) => {
  expect(await make(['events:read', name])).toMatchObject({
    status: 400,
    body: { error: 'VALIDATION_ERROR', message: `Invalid permission: ${name}` },
  });
});

test('a system key gives what it holds: every action under its wildcard, the literal of one that grants nothing', async () => {
  const maker = as((await make(['system-keys:create', 'chat:*', '*:*'])).body.data.key);
  for (const granted of [['chat:read'], ['chat:*'], ['*:*']]) expect((await make(granted, maker)).status).toBe(201);
  for (const name of ['events:read', 'events:*', 'admin-roles:edit', '*']) {
    expect(await make(['chat:read', name], maker)).toMatchObject({
      status: 403,
      body: { error: 'FORBIDDEN', message: `Missing permission: ${name}` },
    });
  }
  expect((await maker.get('/v1/admin/system-keys')).body.message).toBe('Missing permission: system-keys:read');
});

test('nobody else reaches them, and keys of accounts are no operators', async () => {
  const other = await server.account();
  const scope = { label: 'k', permissions: ['events:read'] };
  const user_api_key = (await as(other.access_token).send('POST', '/v1/api-keys', scope)).body.data.key;
  for (const [token, status] of [
    ['', 401],
    [user_api_key, 403],
    [other.access_token, 403],
  ] as const) {
    expect((await as(token).get('/v1/admin/system-keys')).status).toBe(status);
    expect((await make(['events:read'], as(token))).status).toBe(status);
  }
});
