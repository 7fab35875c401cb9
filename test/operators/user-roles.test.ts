import fc from 'fast-check';
import { freeSlug } from '../../domain/common/slugs';
import {
  SYSTEM_USER_ROLES,
  userRole,
  userRoleHolder,
  type UserRoleEvent,
  type UserRoleGiven,
} from '../../domain/operators/user-roles';
import { userRoles } from '../../projections/operators/user-roles';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { ApiClient } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const [role_id, ada, bob] = [uuid(1), uuid(2), uuid(3)];
const [member, , moderator] = SYSTEM_USER_ROLES.map(({ permissions, ...role }): UserRoleEvent & object => ({
  type: 'user_role:created',
  ...role,
  permissions: [...permissions],
  is_system: true,
  created_at: now,
})) as [UserRoleEvent, UserRoleEvent, UserRoleEvent];
const reader = { name: 'Ältere Leser!', description: null, permissions: ['ideas:read'] };
const created: UserRoleEvent = {
  type: 'user_role:created',
  role_id,
  slug: 'altere-leser',
  ...reader,
  is_system: false,
  is_default: false,
  created_at: now,
};
const deleted: UserRoleEvent = { type: 'user_role:deleted', role_id, slug: 'altere-leser', deleted_at: now };
const given_to = (user_id: string, role: string | null): UserRoleGiven => ({
  type: 'user_role:given',
  user_id,
  role_id: role,
  given_at: now,
});

describe('a role of people', () => {
  const given = decider(userRole);
  const create = (change: object = {}) =>
    ({ type: 'user_role:create', role_id, slug: 'altere-leser', ...reader, ...change, now }) as const;
  test('has a slug of its first name, which stays', () => {
    given([]).when(create()).then(created);
    const { name: _name, ...rest } = reader;
    given([created])
      .when({ type: 'user_role:update', name: 'Reader', now })
      .then({ type: 'user_role:updated', role_id, name: 'Reader', ...rest, updated_at: now });
  });
  test('lists user permissions, and those of moderators, and no others', () => {
    given([])
      .when(create({ permissions: ['users:read'] }))
      .thenFails('UNKNOWN_PERMISSION');
    given([])
      .when(create({ permissions: ['ideas:*'] }))
      .thenFails('UNKNOWN_PERMISSION');
    given([])
      .when(create({ permissions: ['ideas:read', 'ideas:moderate_edit'] }))
      .then({ ...created, permissions: ['ideas:moderate_edit', 'ideas:read'] });
  });
  test('is deleted, unless it is the system’s', () => {
    given([created]).when({ type: 'user_role:delete', now }).then(deleted);
    given([created, deleted]).when({ type: 'user_role:delete', now }).thenFails('USER_ROLE_NOT_FOUND');
    given([moderator]).when({ type: 'user_role:delete', now }).thenFails('SYSTEM_USER_ROLE');
  });
  test('is given in place of another, and taken from who has it', () => {
    const given = decider(userRoleHolder);
    const command = { user_id: ada, role_id, now };
    given([])
      .when({ type: 'user_role:give', ...command })
      .then(given_to(ada, role_id));
    given([given_to(ada, role_id)])
      .when({ type: 'user_role:give', ...command })
      .thenNothing();
    given([given_to(ada, role_id)])
      .when({ type: 'user_role:take', ...command })
      .then(given_to(ada, null));
    given([given_to(ada, uuid(9))])
      .when({ type: 'user_role:take', ...command })
      .thenNothing();
  });
});

test('a slug derived from a name is never empty, and unique', () => {
  const slugs = new Set<string>();
  const next = (name: string) => {
    const slug = freeSlug(name, slugs);
    slugs.add(slug);
    return slug;
  };
  expect(['ボランティア', 'Помощник', '!!'].map(next)).toEqual(['role', 'role-2', 'role-3']);
  expect(['F+', 'F#', 'Größe', 'Große'].map(next)).toEqual(['f', 'f-2', 'grosse', 'grosse-2']);
  expect(next('  Süße  Maus 2 ')).toBe('susse-maus-2');
  const names = fc.array(fc.string({ unit: 'binary', maxLength: 100 }));
  fc.assert(
    fc.property(names, (all) => {
      const taken = new Set<string>();
      for (const name of all) {
        const slug = freeSlug(name, taken);
        expect(slug).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
        expect(taken).not.toContain(slug);
        taken.add(slug);
      }
    }),
  );
});

test('the read model shows the same rows when a page comes twice, and asks again about whom a change concerns', async () => {
  const t = await testDatabase();
  const held = [given_to(ada, moderator.role_id), given_to(bob, role_id), given_to(ada, role_id)];
  await feed(t.db, userRoles, [member, moderator, created, ...held], 2);
  expect(await t.db.query('select user_id, role_id from user_role_holders order by user_id')).toEqual([
    { user_id: ada, role_id },
    { user_id: bob, role_id },
  ]);
  const revoked = async (event: UserRoleEvent) => {
    await t.db.query('delete from revocations');
    await feed(t.db, userRoles, [event]);
    return t.db.query('select user_id from revocations order by user_id');
  };
  const updated = (role: string): UserRoleEvent => ({
    type: 'user_role:updated',
    role_id: role,
    ...reader,
    updated_at: now,
  });
  expect(await revoked(updated(role_id))).toEqual([{ user_id: ada }, { user_id: bob }]);
  expect(await revoked(updated(member.role_id))).toEqual([{ user_id: null }]);
  expect(await revoked(deleted)).toEqual([{ user_id: ada }, { user_id: bob }]);
  expect(await t.db.query('select 1 from user_role_holders')).toEqual([]);
  await t.drop();
});

describe('on a server', () => {
  let server: SharedServer;
  let operator: MadeAccount & { api: ApiClient };
  let person: MadeAccount & { api: ApiClient };
  beforeAll(async () => {
    server = await sharedServer();
    const account = async () => {
      const made = await server.account();
      return { ...made, api: new ApiClient(server.base_url, made.access_token) };
    };
    [operator, person] = await Promise.all([account(), account()]);
    await server.operator.setAdminRole(operator.user_id, 'super-admin', true);
  });

  const held = async () => (await person.api.get('/v1/tokens/me')).body.data;
  const permissions = async () => (await held()).user_permissions;

  test('everybody is a member; a role is given in its place at once, and never opens the admin scope', async () => {
    expect(await permissions()).toHaveLength(10);
    const path = (slug: string) =>
      `/v1/user-roles/${SYSTEM_USER_ROLES.find((role) => role.slug === slug)!.role_id}/members/${person.user_id}`;
    expect((await operator.api.send('PUT', path('moderator'), undefined)).body.data).toBe(true);
    expect((await operator.api.send('PUT', path('moderator'), undefined)).body.data).toBe(false);
    expect(await held()).toMatchObject({
      user_permissions: expect.arrayContaining(['ideas:moderate_edit']),
      admin_permissions: [],
    });
    expect((await operator.api.send('PUT', path('restricted'), undefined)).body.data).toBe(true);
    expect(await permissions()).toEqual(['ideas:comment_read', 'ideas:read']);
    const members = (await operator.api.get(path('restricted').replace(/\/[^/]+$/, ''))).body;
    expect(members.data).toMatchObject([{ user_id: person.user_id, display_name: person.display_name }]);
    expect((await operator.api.send('DELETE', path('restricted'), undefined)).status).toBe(204);
    expect(await permissions()).toHaveLength(10);
  });

  test('is made, edited and deleted on both protocols, with its holders', async () => {
    const name = `Reader ${person.user_id}`;
    const made = await operator.api.send('POST', '/v1/user-roles', { name, permissions: ['ideas:read'] });
    expect(made).toMatchObject({ status: 201, body: { data: { name, is_system: false, member_count: 0 } } });
    const { id, slug } = made.body.data;
    expect(slug).toBe(`reader-${person.user_id}`);
    const again = await operator.api.send('POST', '/v1/user-roles', { name, permissions: [] });
    expect(again).toMatchObject({ status: 409, body: { message: 'Role name already in use' } });
    await operator.api.send('PUT', `/v1/user-roles/${id}/members/${person.user_id}`, undefined);
    expect(await permissions()).toEqual(['ideas:read']);
    const { data } = await operator.api.gql(
      'mutation ($id: UUID!) { updateUserRole(id: $id, input: {permissions: ["ideas:vote"]}) { permissions memberCount } }',
      { id },
    );
    expect(data.updateUserRole).toEqual({ permissions: ['ideas:vote'], memberCount: 1 });
    expect(await permissions()).toEqual(['ideas:vote']);
    expect((await operator.api.send('DELETE', `/v1/user-roles/${id}`, undefined)).status).toBe(204);
    expect(await permissions()).toHaveLength(10);
    const gone = await operator.api.gql('query ($id: UUID!) { userRole(id: $id) { id } }', { id });
    expect(gone.errors[0]).toMatchObject({ message: 'User role not found', extensions: { code: 'NOT_FOUND' } });
    const listed = (await operator.api.get('/v1/user-roles')).body.data;
    expect(listed.slice(0, 3).map((role: { slug: string }) => role.slug)).toEqual([
      'member',
      'moderator',
      'restricted',
    ]);
  });

  test('names of every script have a role, and only an equal name is refused', async () => {
    const make = (name: string) => operator.api.send('POST', '/v1/user-roles', { name, permissions: ['ideas:read'] });
    for (const name of ['ボランティア', 'Помощник', 'مساعد', 'Größe', 'Große'])
      expect(await make(name)).toMatchObject({ status: 201, body: { data: { name } } });
    expect(await make('F+')).toMatchObject({ status: 201, body: { data: { slug: 'f' } } });
    expect(await make('F#')).toMatchObject({ status: 201, body: { data: { slug: 'f-2' } } });
    const again = await make('помощник');
    expect(again).toMatchObject({ status: 409, body: { message: 'Role name already in use' } });
    const racing = await Promise.all(['G+', 'G#', 'g+', 'G+'].map(make));
    expect(racing.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409]);
  });

  test('an operator gives nothing of the admin scope that they lack', async () => {
    const role = await operator.api.send('POST', '/v1/admin/admin-roles', {
      name: `User roles ${operator.user_id}`,
      permissions: ['user-roles:read', 'user-roles:create', 'user-roles:edit'],
    });
    await operator.api.send('PUT', `/v1/admin/admin-roles/${role.body.data.id}/members/${person.user_id}`, undefined);
    const moderate = { name: `Judge ${person.user_id}`, permissions: ['ideas:moderate_edit'] };
    const lacking = { status: 403, body: { message: 'Missing permission: ideas:moderate_edit' } };
    expect(await person.api.send('POST', '/v1/user-roles', moderate)).toMatchObject(lacking);
    const path = `/v1/user-roles/${moderator.role_id}/members/${person.user_id}`;
    expect((await person.api.send('PUT', path, undefined)).status).toBe(403);
    const plain = await person.api.send('POST', '/v1/user-roles', { ...moderate, permissions: ['ideas:read'] });
    expect(await person.api.send('PATCH', `/v1/user-roles/${plain.body.data.id}`, moderate)).toMatchObject(lacking);
    expect((await person.api.send('DELETE', `/v1/user-roles/${plain.body.data.id}`, undefined)).status).toBe(403);
  });
});
