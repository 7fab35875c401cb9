import { adminRole, adminRoleReservations, SUPER_ADMIN, type AdminRoleEvent } from '../../domain/operators/admin-roles';
import { ADMIN_PERMISSIONS } from '../../domain/common/permissions';
import { adminRoles } from '../../projections/operators/admin-roles';
import { users } from '../../projections/identity/users';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const [role_id, ada, bob] = [uuid(1), uuid(2), uuid(3)];
const support = { name: 'Support', description: null, permissions: ['admin:access', 'users:read'] };
const created: AdminRoleEvent = {
  type: 'admin_role:created',
  role_id,
  key: role_id,
  is_system: false,
  ...support,
  created_at: now,
};
const seeded: AdminRoleEvent = { type: 'admin_role:created', ...SUPER_ADMIN, created_at: now };
const deleted: AdminRoleEvent = { type: 'admin_role:deleted', role_id, key: role_id, name: 'Support', deleted_at: now };

describe('a role of operators', () => {
  const given = decider(adminRole);
  const create = (permissions: string[]) =>
    ({ type: 'admin_role:create', role_id, name: 'Support', description: null, permissions, now }) as const;
  const update = (changes: object) => ({ type: 'admin_role:update', ...changes, now }) as const;

  test('lets its holders in, and lists what it grants in order', () => {
    given([])
      .when(create(['users:read']))
      .then(created);
    given([created]).when(create([])).thenFails('ROLE_EXISTS');
    given([])
      .when(create(['users:*']))
      .thenFails('UNKNOWN_PERMISSION');
  });
  test('changes by a difference: what no registry knows stays where it was, and comes nowhere new', () => {
    const legacy = { ...created, permissions: ['admin:access', 'old:string', 'users:read'] };
    const asked = (permissions: string[]) => given([legacy]).when(update({ permissions }));
    const after = {
      role_id,
      name: 'Support',
      description: null,
      name_before: 'Support',
    };
    asked(['users:edit']).then({
      type: 'admin_role:updated',
      ...after,
      permissions: ['admin:access', 'old:string', 'users:edit'],
      updated_at: now,
    });
    asked(['old:string', 'users:read']).thenNothing();
    asked(['new:string']).thenFails('UNKNOWN_PERMISSION');
  });
  test('null clears its description, what is left out stays', () => {
    const described = { ...created, description: 'Helps' };
    given([described]).when(update({})).thenNothing();
    given([described])
      .when(update({ description: null }))
      .then({
        type: 'admin_role:updated',
        role_id,
        ...support,
        name_before: 'Support',
        updated_at: now,
      });
  });
  test('is deleted once, and a system role never', () => {
    given([created]).when({ type: 'admin_role:delete', now }).then(deleted);
    given([created, deleted]).when({ type: 'admin_role:delete', now }).thenFails('ADMIN_ROLE_NOT_FOUND');
    given([seeded]).when({ type: 'admin_role:delete', now }).thenFails('SYSTEM_ADMIN_ROLE');
  });
  test('of super admins is seeded once and keeps everything', () => {
    given([]).when({ type: 'admin_role:seed', now }).then(seeded);
    given([seeded]).when({ type: 'admin_role:seed', now }).thenNothing();
    given([seeded])
      .when(update({ permissions: ['users:read'] }))
      .thenFails('SUPER_ADMIN_HOLDS_ALL');
    given([seeded])
      .when(update({ permissions: [...ADMIN_PERMISSIONS] }))
      .thenNothing();
  });
  test('has its name alone, however that is spelt, and gives it back', () => {
    const renamed = {
      type: 'admin_role:updated',
      role_id,
      ...support,
      name: 'SUPPORT',
      name_before: 'Support',
      updated_at: now,
    } as const;
    const name = { kind: 'admin_role_name', owner: role_id };
    expect(adminRoleReservations([created, renamed, deleted])).toEqual([
      { type: 'reserve', ...name, value: 'support' },
      { type: 'rename', ...name, from: 'support', to: 'support' },
      { type: 'release', ...name, value: 'support' },
    ]);
  });
});

test('the read model shows the same rows when a page comes twice, and a change asks about all holders', async () => {
  const t = await testDatabase();
  const held = (user_id: string, role: string) => ({
    type: 'user:admin_role_assigned',
    user_id,
    role,
    assigned_at: now,
  });
  await feed(t.db, users, [held(ada, role_id), held(bob, SUPER_ADMIN.key)], 2);
  await t.db.query('delete from revocations');
  const updated = {
    type: 'admin_role:updated',
    role_id,
    ...support,
    name: 'Help',
    name_before: 'Support',
    updated_at: now,
  };
  await feed(t.db, adminRoles, [seeded, created, updated], 2);
  expect(await t.db.query('select key, name, permissions from admin_roles order by key')).toEqual([
    { key: role_id, name: 'Help', permissions: support.permissions },
    { key: 'super-admin', name: 'Super Admin', permissions: null },
  ]);
  expect(await t.db.query('select distinct user_id from revocations')).toEqual([{ user_id: ada }]);
  await feed(t.db, users, [deleted], 2);
  expect(await t.db.query('select user_id from user_admin_roles')).toEqual([{ user_id: bob }]);
  await t.drop();
});

describe('over HTTP', () => {
  let server: TestServer;
  let root: ApiClient;
  /** Holds the roles that a test gives them. */
  let helper: ApiClient;
  let helper_id: string;
  beforeAll(async () => {
    server = await startServer();
    root = new ApiClient(server.base_url, server.credentials.access_token);
    helper = new ApiClient(server.base_url, server.credentials.other.access_token);
    helper_id = server.credentials.other.user_id;
  });
  afterAll(() => server?.dispose());

  const make = async (name: string, permissions: string[], client = root) =>
    client.send('POST', '/v1/admin/admin-roles', { name, permissions });
  const assign = (role: string, user = helper_id, client = root) =>
    client.send('PUT', `/v1/admin/admin-roles/${role}/members/${user}`, undefined);
  const take = (role: string, user = helper_id, client = root) =>
    client.send('DELETE', `/v1/admin/admin-roles/${role}/members/${user}`, undefined);
  const heldBy = async (client: ApiClient) => (await client.get('/v1/tokens/me')).body.data.admin_permissions;

  test('is made, shown, held at once, changed and deleted', async () => {
    const made = await make('  Support ', ['users:read', 'accounts:read']);
    expect(made.status).toBe(201);
    const { id, ...role } = made.body.data;
    expect(role).toEqual({
      name: 'Support',
      description: null,
      is_system: false,
      permissions: ['accounts:read', 'admin:access', 'users:read'],
      member_count: 0,
      created_at: expect.any(String),
      updated_at: role.created_at,
    });
    expect(await assign(id)).toMatchObject({ status: 200, body: { data: true } });
    expect((await assign(id)).body.data).toBe(false);
    expect(await heldBy(helper)).toEqual(['admin:access', 'users:read', 'accounts:read']);
    const shown = (await root.get(`/v1/admin/admin-roles/${id}`)).body.data;
    expect(shown).toEqual({ id, ...role, member_count: 1 });
    const members = (await root.get(`/v1/admin/admin-roles/${id}/members`)).body.data;
    expect(members).toEqual([
      {
        user_id: helper_id,
        display_name: 'Other Streamer',
        email: null,
        avatar_url: null,
        assigned_at: expect.any(String),
      },
    ]);

    const { data } = await root.gql(
      `mutation ($id: UUID!) { adminUpdateRole(id: $id, input: {permissions: ["users:edit"], description: "Helps"}) {
         name description permissions memberCount } }`,
      { id },
    );
    const permissions = ['admin:access', 'users:edit'];
    expect(data.adminUpdateRole).toEqual({ name: 'Support', description: 'Helps', permissions, memberCount: 1 });
    expect(await heldBy(helper)).toEqual(permissions);
    const cleared = await root.send('PATCH', `/v1/admin/admin-roles/${id}`, { description: null });
    expect(cleared.body.data).toMatchObject({ name: 'Support', description: null, permissions });

    expect((await root.send('DELETE', `/v1/admin/admin-roles/${id}`, undefined)).status).toBe(204);
    expect(await heldBy(helper)).toEqual([]);
    expect(await root.get(`/v1/admin/admin-roles/${id}`)).toMatchObject({
      status: 404,
      body: { error: 'NOT_FOUND', message: 'Admin role not found' },
    });
    const gone = await root.gql('query ($id: UUID!) { adminRoleMembers(roleId: $id) { userId } }', { id });
    expect(gone.errors[0]).toMatchObject({ message: 'Admin role not found', extensions: { code: 'NOT_FOUND' } });
    expect((await make('support', [])).status).toBe(201);
  });

  test('the catalogue has the registry, the list begins with the system role', async () => {
    const all = (await root.get('/v1/admin/admin-permissions')).body.data;
    expect(all).toHaveLength(90);
    expect(all).toContainEqual({ permission: 'admin-roles:edit', category: 'admin-roles' });
    const { adminRoles: listed } = (await root.gql('{ adminRoles { id name isSystem permissions memberCount } }')).data;
    expect(listed[0]).toEqual({
      id: SUPER_ADMIN.role_id,
      name: 'Super Admin',
      isSystem: true,
      permissions: [...ADMIN_PERMISSIONS].sort(),
      memberCount: 1,
    });
  });

  test.each([
    [{ permissions: [] }, 'Name is required'],
    [{ name: '  ', permissions: [] }, 'Name is required'],
    [{ name: '\u200b', permissions: [] }, 'Name is required'],
    [{ name: 'x'.repeat(101), permissions: [] }, 'Name must be 100 characters or less'],
    [{ name: '%'.repeat(100), permissions: [] }, 'Name must be 100 characters or less'],
    [{ name: 'One', permissions: ['users:*'] }, 'Invalid permission: users:*'],
    [{ name: 'One', permissions: ['events:read'] }, 'Invalid permission: events:read'],
    [{ name: 'super ADMIN', permissions: [] }, 'Role name already in use'],
  ])('%j is refused', async (body, message) => {
    expect(await root.send('POST', '/v1/admin/admin-roles', body)).toMatchObject({
      status: 400,
      body: { error: 'VALIDATION_ERROR', message },
    });
  });

  test('a system role is renamed, and neither narrowed nor deleted', async () => {
    const path = `/v1/admin/admin-roles/${SUPER_ADMIN.role_id}`;
    expect((await root.send('PATCH', path, { description: 'All' })).body.data).toMatchObject({ description: 'All' });
    expect(await root.send('PATCH', path, { permissions: ['users:read'] })).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'The super admin role keeps every permission' },
    });
    expect(await root.send('DELETE', path, undefined)).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'Cannot delete system admin role' },
    });
  });

  test('nobody hands on, or takes away, what they lack, nor raises the role they hold', async () => {
    const keeper = (await make('Keeper', ['admin-roles:read', 'admin-roles:create', 'admin-roles:edit'])).body.data.id;
    const mayGive = async () => (await helper.gql('{ adminAssignablePermissions { permission } }')).data;
    const wide = (await make('Wide', ['users:delete'])).body.data.id;
    await assign(keeper);
    expect((await mayGive()).adminAssignablePermissions.map((one: { permission: string }) => one.permission)).toEqual([
      'admin:access',
      'admin-roles:read',
      'admin-roles:create',
      'admin-roles:edit',
    ]);
    const lacking = { status: 403, body: { error: 'FORBIDDEN', message: 'Missing permission: users:delete' } };
    expect(await make('Mine', ['users:delete'], helper)).toMatchObject(lacking);
    expect(await assign(wide, helper_id, helper)).toMatchObject(lacking);
    const emptied = { permissions: [] };
    expect(await helper.send('PATCH', `/v1/admin/admin-roles/${wide}`, emptied)).toMatchObject(lacking);
    expect(await take(wide, helper_id, helper)).toMatchObject(lacking);
    expect((await assign(SUPER_ADMIN.role_id, helper_id, helper)).status).toBe(403);
    expect((await take(SUPER_ADMIN.role_id, server.credentials.user_id, helper)).status).toBe(403);
    const mine = (await make('Mine', ['admin-roles:read'], helper)).body.data.id;
    const edit = (role: string, permissions: string[], client = helper) =>
      client.send('PATCH', `/v1/admin/admin-roles/${role}`, { permissions });
    expect(await edit(mine, ['users:delete'])).toMatchObject(lacking);
    expect((await edit(mine, ['admin-roles:edit'])).status).toBe(200);
    await assign(mine);
    expect(await edit(mine, ['admin-roles:edit', 'admin-roles:create'])).toMatchObject({
      status: 403,
      body: { message: 'You cannot add permissions to a role that you hold' },
    });
    expect((await edit(mine, [])).status).toBe(200);
    // The account scope's string of the same name opens nothing here.
    const { errors } = await helper.gql('mutation { adminDeleteRole(id: "' + mine + '") }');
    expect(errors[0]).toMatchObject({ message: 'Missing permission: admin-roles:delete' });
    for (const role of [keeper, mine]) await take(role);
  });

  test('the last super admin stays, also when two take the last two at once', async () => {
    const { role_id: role } = SUPER_ADMIN;
    const { user_id } = server.credentials;
    expect(await take(role, user_id)).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'The last super admin cannot be taken away' },
    });
    await assign(role);
    const both = await Promise.all([take(role, user_id), take(role, helper_id, helper)]);
    expect(both.map(({ status }) => status).sort()).toEqual([204, expect.any(Number)]);
    const { adminRoleMembers: left } = (
      await Promise.all([root, helper].map((one) => one.gql(`{ adminRoleMembers(roleId: "${role}") { userId } }`)))
    ).find(({ data }) => data)!.data;
    expect(left).toHaveLength(1);
  });
});
