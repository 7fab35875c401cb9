import { seededRoles } from '../../domain/accounts/roles';
import { account, type AccountCommand, type AccountEvent } from '../../domain/accounts/accounts';
import { ACCOUNT_PERMISSIONS, DEFAULT_ROLES } from '../../domain/common/permissions';
import { accounts } from '../../projections/accounts/accounts';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import { Client } from '../support/realtime';
import { feed, uuid } from '../support/identity';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import type { Door } from '../support/door';

const now = '2026-01-02T03:04:05.000Z';
const [account_id, ada, bob, role_id] = [uuid(1), uuid(2), uuid(3), uuid(20)];
const role_ids = [uuid(11), uuid(12), uuid(13), uuid(14)] as const;
const [owner, , moderator, viewer] = role_ids;
const created: AccountEvent = {
  type: 'account:created',
  ...{ account_id, name: 'Ada', description: null, plan: 'free', owner_id: ada, membership_id: uuid(4) },
  roles: seededRoles(role_ids),
  created_at: now,
};
const joined = (role: string): AccountEvent => ({
  type: 'account:member_added',
  ...{ account_id, membership_id: uuid(5), user_id: bob, role_id: role, added_at: now },
});
const said = { name: 'Mixer', description: 'Runs the sounds', color: '#123456' };
const made: AccountEvent = {
  type: 'account:role_created',
  ...{ account_id, role_id, slug: 'mixer', ...said, position: 5, permissions: ['sounds:read', 'sounds:play'] },
  created_at: now,
};
const operator = null;

describe('a role', () => {
  const given = decider(account);
  const create = (more: object = {}): AccountCommand => ({
    type: 'account:create_role',
    ...{ role_id, ...said, permissions: ['sounds:play', 'sounds:read', 'sounds:play'], by: operator, now },
    ...more,
  });
  const change = (changes: object, more: object = {}): AccountCommand => ({
    type: 'account:change_role',
    ...{ role_id, changes, by: operator, now },
    ...more,
  });
  const changed = (changes: object) => ({ ...said, permissions: ['sounds:read', 'sounds:play'], ...changes });

  test('is made behind the others, its permissions once and in order', () =>
    given([created]).when(create()).then(made));
  test.each([['Mixer'], ['mixer'], ['ＭＩＸＥＲ'], ['Mix\u200ber']])('is the only one called so: %s', (name) =>
    given([created, made])
      .when(create({ role_id: uuid(21), name }))
      .thenFails('ROLE_NAME_TAKEN'),
  );
  test.each([
    ['Mix-er', 'mix-er'],
    ['mixer!', 'mixer-2'],
    ['★', 'role'],
  ])('has a slug of its own: %s', (name, slug) =>
    given([created, made])
      .when(create({ role_id: uuid(21), name }))
      .then({ ...made, role_id: uuid(21), name, slug, position: 6 } as AccountEvent),
  );
  test.each(['*', '*:*', 'sounds:*', 'sounds', 'admin:access', 'ideas:read', 'toString'])('never holds %s', (odd) => {
    given([created])
      .when(create({ permissions: ['sounds:read', odd] }))
      .thenFails('UNKNOWN_PERMISSION');
    given([created, made])
      .when(change({ permissions: [odd] }))
      .thenFails('UNKNOWN_PERMISSION');
  });
  test('changes in what is said of it, and nothing when that is the same', () => {
    given([created, made])
      .when(change({ color: '#000000' }))
      .then({
        type: 'account:role_changed',
        ...{ account_id, role_id, ...said, color: '#000000', permissions: ['sounds:read', 'sounds:play'] },
        changed_at: now,
      });
    given([created, made])
      .when(change({ permissions: ['sounds:play', 'sounds:read'], name: 'Mixer' }))
      .thenNothing();
    given([created])
      .when(change({ color: '#000000' }))
      .thenFails('ROLE_NOT_FOUND');
  });
  test('the Owner stays as it is, a default role keeps its name, and neither goes', () => {
    const of = (role_id: string) => ({ role_id });
    given([created])
      .when(change({ color: '#000000' }, of(owner)))
      .thenFails('SYSTEM_ROLE');
    given([created])
      .when(change({ name: 'Mod' }, of(moderator)))
      .thenFails('DEFAULT_ROLE_NAME');
    given([created])
      .when(change({ permissions: [] }, of(viewer)))
      .then({
        type: 'account:role_changed',
        ...{ account_id, role_id: viewer, name: 'Viewer', description: 'Looks on', color: '#6b7280' },
        permissions: [],
        changed_at: now,
      });
    for (const id of role_ids)
      given([created]).when({ type: 'account:delete_role', role_id: id, now }).thenFails('DEFAULT_ROLE');
  });
  test('is deleted once nobody holds it, with the invites that offer it', () => {
    const invited: AccountEvent = {
      type: 'account:invite_created',
      ...{
        account_id,
        invite_id: uuid(30),
        code_hash: 'h',
        code_prefix: 'h',
        role_id,
        made_by: ada,
        max_uses: 1,
        made_with: null,
      },
      expires_at: null,
      created_at: now,
    };
    const deleting = { type: 'account:delete_role', role_id, now } as const;
    given([created, made, joined(role_id)])
      .when(deleting)
      .thenFails('ROLE_IN_USE');
    given([created, made, invited])
      .when(deleting)
      .then(
        { type: 'account:invite_deleted', account_id, invite_id: uuid(30), deleted_at: now },
        { type: 'account:role_deleted', account_id, role_id, deleted_at: now },
      );
  });

  describe('gives no permission that its maker lacks', () => {
    const by = (user_id: string | null, ...permissions: string[]) => ({ by: { user_id, permissions } });
    const three = [created, made, joined(role_id)];
    test.each([
      ['by what the credential lacks', by(ada, 'sounds:read')],
      ['by what the member behind it lacks, whatever it holds', by(bob, 'sounds:read', 'chat:ban')],
      ['by one who is no member', by(uuid(9), 'sounds:read', 'chat:ban')],
      ["by what a key of nobody's lacks", by(null, 'sounds:read')],
    ])('%s', (_how, giver) => {
      given(three)
        .when(create({ role_id: uuid(21), name: 'X', permissions: ['sounds:read', 'chat:ban'], ...giver }))
        .thenFails('PERMISSION_BEYOND_OWN');
      given(three)
        .when(change({ permissions: ['sounds:read', 'chat:ban'] }, giver))
        .thenFails('PERMISSION_BEYOND_OWN');
      given(three)
        .when({ type: 'account:change_member_role', user_id: bob, role_id: moderator, ...giver, now })
        .thenFails('PERMISSION_BEYOND_OWN');
    });
    test('but goes on with what it held, and loses what its changer lacks', () => {
      given(three)
        .when(change({ color: '#000000', permissions: ['sounds:play'] }, by(bob)))
        .then({
          type: 'account:role_changed',
          ...{ account_id, role_id, ...said, color: '#000000', permissions: ['sounds:play'], changed_at: now },
        });
    });
    test('and an owner gives all', () =>
      given(three)
        .when(change({ permissions: ACCOUNT_PERMISSIONS }, by(ada, ...ACCOUNT_PERMISSIONS)))
        .then({
          type: 'account:role_changed',
          ...{ account_id, role_id, ...changed({ permissions: [...ACCOUNT_PERMISSIONS] }), changed_at: now },
        } as AccountEvent));
  });
});

test('the read model shows the same rows when a page comes twice', async () => {
  const t = await testDatabase();
  const gone = { ...made, role_id: uuid(22), slug: 'gone', name: 'Gone' };
  await feed(
    t.db,
    accounts,
    [
      created,
      made,
      {
        type: 'account:role_changed',
        ...{ account_id, role_id, ...said, permissions: ['chat:read'] },
        changed_at: now,
      },
      gone,
      { type: 'account:role_deleted', account_id, role_id: uuid(22), deleted_at: now },
    ],
    2,
  );
  const rows = await t.db.query(
    'select slug, name, color, description, is_default, permissions from account_roles order by position',
  );
  expect(rows.map(({ slug, color }) => [slug, color])).toEqual([
    ['owner', '#f59e0b'],
    ['administrator', '#ef4444'],
    ['moderator', '#22c55e'],
    ['viewer', '#6b7280'],
    ['mixer', '#123456'],
  ]);
  expect(rows[4]).toEqual({ slug: 'mixer', ...said, is_default: false, permissions: ['chat:read'] });
  await t.drop();
});

describe('on the server', () => {
  let server: SharedServer;
  let home: MadeAccount & { door: Door };
  beforeAll(async () => {
    server = await sharedServer();
    home = await server.account();
  });

  test('the four roles and the catalogue are read on both protocols', async () => {
    const listed = await home.door.rest('GET', '/v1/roles');
    expect(listed.json.data).toMatchObject(
      DEFAULT_ROLES.map(({ slug, name, color, permissions }) => {
        return { slug, name, color, permissions, is_default: true, is_system: slug === 'owner' };
      }),
    );
    expect(listed.json.data.map((role: { member_count: number }) => role.member_count)).toEqual([1, 0, 0, 0]);
    const { json } = await home.door.gql(
      '{ roles { slug isSystem isDefault memberCount } accountPermissions { permission category } }',
    );
    expect(json.data.roles[0]).toEqual({ slug: 'owner', isSystem: true, isDefault: true, memberCount: 1 });
    expect(json.data.accountPermissions).toHaveLength(123);
    expect((await home.door.rest('GET', '/v1/roles/permissions')).json.data).toEqual(json.data.accountPermissions);
  });

  test('a role is made, changed and deleted; another account has nothing to do with it', async () => {
    const body = { name: ' Mixer ', permissions: ['sounds:play', 'sounds:read'] };
    const answer = await home.door.rest('POST', '/v1/roles', { body });
    expect(answer).toMatchObject({ status: 201 });
    const role = answer.json.data;
    expect(role).toMatchObject({
      slug: 'mixer',
      name: 'Mixer',
      color: '#6b7280',
      description: null,
      is_default: false,
    });
    expect(role.permissions).toEqual(['sounds:read', 'sounds:play']);
    const path = `/v1/roles/${role.id}`;
    const change = { name: 'Sound', description: 'x', color: '#ABCDEF' };
    const after = { ...role, name: 'Sound', description: 'x', color: '#abcdef' };
    expect((await home.door.rest('PATCH', path, { body: change })).json.data).toEqual(after);
    expect((await home.door.rest('GET', '/v1/roles')).json.data[4]).toEqual(after);

    const stranger = await server.account();
    expect(await stranger.door.rest('PATCH', path, { body: change })).toMatchObject({
      status: 404,
      json: { error: 'NOT_FOUND', message: 'Role not found' },
    });
    expect((await stranger.door.rest('DELETE', path)).status).toBe(404);
    expect((await home.door.rest('DELETE', path)).status).toBe(204);
    expect((await home.door.rest('DELETE', path)).status).toBe(404);
  });

  test.each([
    [{ permissions: ['sounds:*'] }, 400, 'VALIDATION_ERROR', 'Invalid permission: sounds:*'],
    [{ permissions: ['*:*'] }, 400, 'VALIDATION_ERROR', 'Invalid permission: *:*'],
    [{ permissions: ['admin:access'] }, 400, 'VALIDATION_ERROR', 'Invalid permission: admin:access'],
    [{ name: ' ' }, 400, 'VALIDATION_ERROR', 'Name is required'],
    [{ name: '\u200b' }, 400, 'VALIDATION_ERROR', 'Name is required'],
    [{ name: 'x'.repeat(101) }, 400, 'VALIDATION_ERROR', 'Name must be 100 characters or less'],
    [{ color: 'red' }, 400, 'VALIDATION_ERROR', 'color must be #rrggbb'],
    [{ name: 'OWNER' }, 409, 'CONFLICT', 'Role name already in use'],
  ])('%j is refused with %i %s on both protocols', async (wrong, status, error, message) => {
    const body = { name: 'Refused', permissions: [], ...wrong };
    const answer = await home.door.rest('POST', '/v1/roles', { body });
    expect(answer).toMatchObject({ status, json: { error, message } });
    const twin = await home.door.gql('mutation($input: CreateRoleInput!) { createRole(input: $input) { id } }', {
      variables: { input: body },
    });
    expect(twin.json.errors[0]).toMatchObject({ message, extensions: { code: error } });
  });

  test('members of an extra permission are refused at once when it is taken away, on their sockets too', async () => {
    const { door } = home;
    const body = { name: 'Reader', permissions: ['events:read', 'roles:edit', 'members:edit'] };
    const role = (await door.rest('POST', '/v1/roles', { body })).json.data;
    const member = await server.member(home.account_id, 'viewer');
    const place = `/v1/accounts/${home.account_id}/members/${member.user_id}`;
    expect((await door.rest('PATCH', place, { body: { role_id: role.id } })).json.data.role.id).toBe(role.id);

    // They give what they hold, and nothing else; not to themselves either.
    const reader = { name: 'Reader 2', permissions: ['events:read'] };
    expect((await member.door.rest('POST', '/v1/roles', { body: reader })).status).toBe(201);
    const refused = { status: 403, json: { error: 'FORBIDDEN', message: 'Missing permission: account:delete' } };
    const more = { permissions: [...body.permissions, 'account:delete'] };
    expect(await member.door.rest('PATCH', `/v1/roles/${role.id}`, { body: more })).toMatchObject(refused);
    const [, administrator] = (await door.rest('GET', '/v1/roles')).json.data;
    const raised = await member.door.rest('PATCH', place, { body: { role_id: administrator.id } });
    expect(raised).toMatchObject({ status: 403, json: { message: 'Missing permission: events:create' } });

    const socket = await Client.open(server.ws_url, member.access_token);
    expect(await socket.subscribe(`events:${home.account_id}`)).toMatchObject({ type: 'subscribed' });
    const less = { permissions: ['roles:edit'] };
    expect((await door.rest('PATCH', `/v1/roles/${role.id}`, { body: less })).status).toBe(200);
    expect((await member.door.rest('GET', '/v1/events')).status).toBe(403);
    const lost = await socket.next(({ type }) => type === 'error', 'the end of the channel');
    expect(lost).toMatchObject({ code: 'UNAUTHORIZED', channel: `events:${home.account_id}` });
    await socket.ask({ type: 'ping' }, 'pong');
    socket.end();

    expect(await door.rest('DELETE', `/v1/roles/${role.id}`)).toMatchObject({
      status: 409,
      json: { error: 'CONFLICT', message: 'The role is held by members; give them another one first' },
    });
  });
});
