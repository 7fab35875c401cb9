import { v7 } from 'uuid';
import { dropAbandonedProfiles } from '../../services/identity/abandoned-profiles';
import { SERVICE_CALLER, withoutReadYourWrites } from '../../app/service-calls';
import type { Services } from '../../app/services';
import { prepare } from '../../api/rest/invoke';
import { adminDeleteUser } from '../../commands/operators/admin-users';
import { ownership } from '../../domain/accounts/ownerships';
import { user, type UserEvent, userStream } from '../../domain/identity/users';
import type { EventStore } from '../../engines/event-store/port';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { type TestDatabase, testDatabase } from '../support/database';
import { decider } from '../support/decider';
import { uuid } from '../support/identity';
import { sharedServer, type SharedServer } from '../support/shared-server';
import { ApiClient, eventually } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const [user_id, account_id, login_connection_id] = [uuid(1), uuid(2), uuid(3)];

describe('a user', () => {
  const login = { login_connection_id, provider: 'kick', identity: 'hash' } as const;
  const registered: UserEvent = { type: 'user:registered', user_id, registered_at: now };
  const connected: UserEvent = {
    type: 'user:login_connected',
    user_id,
    ...login,
    linked_with: null,
    connected_at: now,
  };
  const assigned: UserEvent = { type: 'user:admin_role_assigned', user_id, role: 'super-admin', assigned_at: now };
  const deleted: UserEvent = { type: 'user:deleted', user_id, deleted_at: now };

  test('gives back all that they held when they are deleted, and is nobody afterwards', () => {
    const given = decider(user);
    given([registered, connected, assigned])
      .when({ type: 'user:delete', now })
      .then(
        { type: 'user:admin_role_removed', user_id, role: 'super-admin', removed_at: now },
        {
          type: 'user:login_disconnected',
          ...{ user_id, ...login, removed_with: null, session_id: null, disconnected_at: now },
        },
        deleted,
      );
    for (const command of [
      { type: 'user:delete', now },
      { type: 'user:assign_admin_role', role: 'super-admin', now },
      { type: 'user:connect_login', ...login, now },
    ] as const)
      given([registered, deleted]).when(command).thenFails('USER_NOT_FOUND');
    given([registered, deleted]).when({ type: 'user:register', user_id, now }).thenFails('USER_EXISTS');
  });

  test('makes no account once they are deleted', () => {
    const given = decider(ownership);
    const closed = { type: 'ownership:closed', user_id, closed_at: now } as const;
    given([]).when({ type: 'ownership:close', user_id, now }).then(closed);
    const open = { user_id, account_id, owned: [], ended: [], max_accounts: 2, several: true, now };
    given([closed])
      .when({ type: 'ownership:open', ...open })
      .thenFails('USER_NOT_FOUND');
  });
});

describe('beside a deletion', () => {
  let t: TestDatabase;
  let store: EventStore;
  beforeAll(async () => {
    t = await testDatabase();
    store = await createPostgresEventStore({ pool: t.db.pool, wakeups: createLocalWakeups() });
  });
  afterAll(async () => {
    await store?.close();
    await t?.drop();
  });
  const say = (type: string, data: { user_id: string }) =>
    store.append([{ stream: userStream(data.user_id), expected: 'any', events: [{ id: v7(), type, data }] }], {});
  const register = (id: string) => say('user:registered', { user_id: id, ...{ registered_at: now } });

  test('a role that is given meanwhile is judged like those before it', async () => {
    await register(user_id);
    let looked = 0;
    const events: EventStore = Object.assign(Object.create(store) as EventStore, {
      async read(...asked: Parameters<EventStore['read']>) {
        const found = await store.read(...asked);
        if (asked[0] === userStream(user_id) && (looked += 1) === 1)
          await say('user:admin_role_assigned', { user_id, ...{ role: 'super-admin', assigned_at: now } });
        return found;
      },
    });
    const services = {
      ...{ db: t.db, events, access: { announce: async () => undefined } },
      ...withoutReadYourWrites(events, () => ({})),
    } as unknown as Services;
    const operator = { ...SERVICE_CALLER, admin_permissions: new Set(['users:delete']) };
    const context = { correlation_id: v7(), trace: null, ip: '', now: Date.parse(now), idempotency_seed: null };
    const deleted = prepare(adminDeleteUser, services).run({ caller: operator, input: { id: user_id } }, context);
    await expect(deleted).rejects.toMatchObject({ code: 'FORBIDDEN', message: 'Missing permission: admin:access' });
    expect(looked).toBeGreaterThan(1);
  });

  test('a profile that is written once its person was erased goes by itself; a living one stays', async () => {
    const [gone, living] = [uuid(70), uuid(71)];
    await register(gone);
    await register(living);
    await say('user:deleted', { user_id: gone, ...{ deleted_at: now } });
    await t.db.query(
      `insert into profiles (user_id, display_name, updated_at)
       select id, 'Ada', clock_timestamp() - interval '1 hour' from unnest($1::uuid[]) as id`,
      [[gone, living]],
    );
    expect(await dropAbandonedProfiles({ db: t.db, events: store })).toBe(1);
    expect(await t.db.query('select user_id from profiles')).toEqual([{ user_id: living }]);
  });
});

describe('on a server', () => {
  let server: SharedServer;
  let operator: ApiClient;
  let operator_id: string;
  const clientOf = (token: string) => new ApiClient(server.base_url, token);
  beforeAll(async () => {
    server = await sharedServer();
    const made = await server.account();
    operator_id = made.user_id;
    operator = clientOf(made.access_token);
    await server.operator.setAdminRole(made.user_id, 'super-admin', true);
  });

  test('is found by name or address, a page at a time, and shown with accounts and overrides', async () => {
    const ada = await server.account();
    await operator.send('PATCH', `/v1/admin/users/${ada.user_id}`, { email: `Ada+${ada.user_id}@Example.com` });
    const found = await operator.get(`/v1/admin/users?search=${encodeURIComponent(`ada+${ada.user_id}@`)}`);
    expect(found.body.data).toEqual([
      {
        id: ada.user_id,
        display_name: ada.display_name,
        email: `Ada+${ada.user_id}@Example.com`,
        avatar_url: null,
        created_at: expect.any(String),
        last_login_at: expect.any(String),
        account_creation_override: 'default',
        max_accounts_override: null,
        user_role: 'member',
        admin_roles: [],
        account_count: 1,
      },
    ]);
    const page = await operator.get('/v1/admin/users?search=person%20&limit=1&page=2');
    expect(page.body._meta).toMatchObject({ page: 2, limit: 1 });
    expect(page.body.data).toHaveLength(1);
    expect((await operator.get('/v1/admin/users?search=%25')).body.data).toEqual([]);
    const { data } = await operator.gql(
      'query ($id: UUID!) { adminUser(id: $id) { displayName accountCreationOverride accounts { id isOwner } } }',
      { id: ada.user_id },
    );
    expect(data.adminUser).toEqual({
      displayName: ada.display_name,
      accountCreationOverride: 'DEFAULT',
      accounts: [{ id: ada.account_id, isOwner: true }],
    });
  });

  test('is edited, with overrides that hold at once', async () => {
    const ada = await server.account();
    const api = clientOf(ada.access_token);
    const path = `/v1/admin/users/${ada.user_id}`;
    const changes = { display_name: ' Ada ', account_creation_override: 'deny', max_accounts_override: 7 };
    const { body } = await operator.send('PATCH', path, changes);
    expect(body.data).toMatchObject({ ...changes, display_name: 'Ada' });
    expect((await api.get('/v1/users/me')).body.data).toMatchObject({
      display_name: 'Ada',
      max_accounts: 7,
      feature_statuses: expect.arrayContaining([
        { key: 'system:account_creation', enabled: false, reason: 'user_override' },
      ]),
    });
    expect((await api.send('POST', '/v1/accounts', {})).body.error_code).toBe('account_creation_disabled');
    const allowed = await operator.gql(
      `mutation ($id: UUID!) { adminUpdateUserAccountCreationOverride(userId: $id, override: ALLOW) {
         accountCreationOverride maxAccountsOverride } }`,
      { id: ada.user_id },
    );
    const override = { accountCreationOverride: 'ALLOW', maxAccountsOverride: 7 };
    expect(allowed.data.adminUpdateUserAccountCreationOverride).toEqual(override);
    expect((await operator.send('PATCH', path, {})).body.message).toBe('At least one field must be given');
    expect((await operator.send('PATCH', `/v1/admin/users/${uuid(404)}`, { display_name: 'x' })).body).toMatchObject({
      error: 'NOT_FOUND',
      message: 'User not found',
    });
    // What an operator does is no affair of the account that they were on.
    const own = await operator.get('/v1/account/audit-log?limit=100');
    expect(JSON.stringify(own.body)).not.toContain(ada.user_id);
  });

  test('the account scope opens none of it, and neither does a role without the permission', async () => {
    const ada = await server.account();
    const api = clientOf(ada.access_token);
    const made = await operator.send('POST', '/v1/admin/admin-roles', {
      name: `Reads users ${ada.user_id}`,
      permissions: ['users:read'],
    });
    expect((await api.get('/v1/admin/users')).body.message).toBe('Missing permission: users:read');
    const member = `/v1/admin/admin-roles/${made.body.data.id}/members/${ada.user_id}`;
    await operator.send('PUT', member, undefined);
    expect((await api.get('/v1/admin/users')).status).toBe(200);
    const path = `/v1/admin/users/${operator_id}`;
    expect((await api.send('PATCH', path, { display_name: 'x' })).body.message).toBe('Missing permission: users:edit');
    expect((await api.send('DELETE', path, undefined)).body.message).toBe('Missing permission: users:delete');
  });

  test('is deleted only by who holds as much, and never while they own an account', async () => {
    const ada = await server.account();
    const api = clientOf(ada.access_token);
    const made = await operator.send('POST', '/v1/admin/admin-roles', {
      name: `Deletes users ${ada.user_id}`,
      permissions: ['users:delete'],
    });
    const member = `/v1/admin/admin-roles/${made.body.data.id}/members/${ada.user_id}`;
    await operator.send('PUT', member, undefined);
    const refused = await api.send('DELETE', `/v1/admin/users/${operator_id}`, undefined);
    expect(refused).toMatchObject({ status: 403, body: { message: 'Missing permission: admin:privacy-erase' } });
    expect(await operator.send('DELETE', `/v1/admin/users/${ada.user_id}`, undefined)).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: 'The user owns an account: dissolve it, or give it another owner, first' },
    });
    expect((await operator.send('DELETE', `/v1/admin/users/${uuid(404)}`, undefined)).status).toBe(404);
  });

  test('leaves nothing that is readable or works', async () => {
    const bob = await server.account();
    const member = await server.member(bob.account_id, 'administrator');
    const api = clientOf(member.access_token);
    await api.send('PATCH', '/v1/users/me', { email: `${member.user_id}@example.com` });
    const made = await api.send('POST', '/v1/api-keys', { label: 'Bot', permissions: ['events:read'] });
    const key = clientOf(made.body.data.key);
    expect((await key.get('/v1/tokens/me')).status).toBe(200);
    const path = `/v1/admin/users/${member.user_id}`;
    const once = () => operator.send('DELETE', path, undefined, { 'idempotency-key': member.user_id });
    const popout = await api.send('POST', '/v1/tokens', { permissions: ['events:read'] });
    const page = clientOf(popout.body.data.token);
    const acting = { permissions: ['events:read'], user_id: member.user_id };
    const for_them = await clientOf(bob.access_token).send('POST', '/v1/tokens', acting);
    expect((await once()).status).toBe(204);
    // Right after the deletion, whatever follows from it later.
    const credentials = [key, page, clientOf(for_them.body.data.token)];
    const statuses = await Promise.all(credentials.map(async (one) => (await one.get('/v1/tokens/me')).status));
    expect(statuses).toEqual([401, 401, 401]);
    expect((await once()).status).toBe(204);
    expect((await api.get('/v1/tokens/me')).status).toBe(401);
    expect((await operator.get(path)).status).toBe(404);
    expect((await operator.send('DELETE', path, undefined)).status).toBe(404);

    const owner = clientOf(bob.access_token);
    const gone = async () => {
      const { data } = (await owner.get(`/v1/accounts/${bob.account_id}/members`)).body;
      return data.length === 1 && (await key.get('/v1/tokens/me')).status === 401 ? true : undefined;
    };
    await eventually(gone, 'the membership and the key to end');
    const db = new PostgresDatabase({ url: server.database_url, name: 'admin-users', size: 1 });
    const rows = (table: string) => db.query(`select 1 from ${table} where user_id = $1`, [member.user_id]);
    await eventually(async () => {
      const left = await Promise.all(['profiles', 'sessions', 'user_sessions', 'api_keys'].map(rows));
      return left.flat().length === 0 ? true : undefined;
    }, 'the profile and sessions to go');
    await db.close();
    const logged = await eventually(async () => {
      const { data } = (await operator.get(`/v1/admin/audit-log?target_id=${member.user_id}&action=user:deleted`)).body;
      return data.length === 0 ? undefined : data;
    }, 'the deletion in the audit log');
    expect(logged).toMatchObject([{ actor: { id: operator_id }, target: { kind: 'user', id: member.user_id } }]);
  });
});
