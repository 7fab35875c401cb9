import { profile } from '../../domain/identity/profiles';
import { userPreferences } from '../../domain/identity/user-preferences';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { userPreferences as model } from '../../projections/identity/user-preferences';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { ApiClient, eventually } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const user_id = uuid(1);
const preferred = (streamer_mode: boolean, extension_dev_mode: boolean) =>
  ({ type: 'user_preference:set', user_id, streamer_mode, extension_dev_mode, set_at: now }) as const;

test('what is left out of preferences stays, and what is so already is said once', () => {
  const given = decider(userPreferences);
  const set = (changes: object) => ({ type: 'user_preference:set', user_id, changes, now }) as const;
  given([]).when(set({})).thenNothing();
  given([])
    .when(set({ streamer_mode: true }))
    .then(preferred(true, false));
  given([preferred(true, false)])
    .when(set({ extension_dev_mode: true }))
    .then(preferred(true, true));
  given([preferred(true, true)])
    .when(set({ streamer_mode: true }))
    .thenNothing();
});

test('a profile says what changed of it', () => {
  const before = { display_name: 'Ada', email: null };
  const after = { display_name: 'Ada', email: 'ada@example.com' };
  const given = decider(profile);
  given([]).when({ type: 'profile:change', user_id, before, after: before, now }).thenNothing();
  given([])
    .when({ type: 'profile:change', user_id, before, after, now })
    .then({ type: 'profile:changed', user_id, changed: ['email'], ...after, changed_at: now });
});

test('the read model shows the same rows when a page comes twice', async () => {
  const t = await testDatabase();
  await feed(t.db, model, [preferred(true, false), preferred(false, true)], 2);
  expect(await t.db.query('select user_id, streamer_mode, extension_dev_mode from user_preferences')).toEqual([
    { user_id, streamer_mode: false, extension_dev_mode: true },
  ]);
  await t.drop();
});

describe('on a server', () => {
  let server: SharedServer;
  let ada: MadeAccount & { api: ApiClient };
  const clientOf = (token: string) => new ApiClient(server.base_url, token);
  beforeAll(async () => {
    server = await sharedServer();
    const made = await server.account();
    ada = { ...made, api: clientOf(made.access_token) };
  });

  const FIELDS = `id displayName email avatarUrl createdAt activeAccountId permissions adminPermissions userPermissions
    accounts { id name plan isOwner avatarUrl role { slug } } loginConnections { provider } enabledFeatures
    featureStatuses { key enabled reason } token ownedAccountCount maxAccounts streamerMode isDeveloper extensionDevMode`;

  test('a person sees all of themselves, the same on both protocols', async () => {
    const { body, status } = await ada.api.get('/v1/users/me');
    expect(status).toBe(200);
    const { enabled_features, feature_statuses, permissions, ...rest } = body.data;
    expect(rest).toEqual({
      id: ada.user_id,
      display_name: ada.display_name,
      email: null,
      avatar_url: null,
      created_at: expect.any(String),
      active_account_id: ada.account_id,
      accounts: [
        expect.objectContaining({
          id: ada.account_id,
          name: ada.name,
          plan: 'free',
          is_owner: true,
          avatar_url: null,
          role: expect.objectContaining({ slug: 'owner' }),
        }),
      ],
      admin_permissions: [],
      user_permissions: expect.arrayContaining(['ideas:vote']),
      login_connections: [],
      owned_account_count: 1,
      max_accounts: 1,
      streamer_mode: false,
      is_developer: false,
      extension_dev_mode: false,
    });
    expect(permissions).toHaveLength(123);
    expect(enabled_features).toContain('feature:apikeys');
    expect(feature_statuses).toContainEqual({ key: 'system:account_creation', enabled: true, reason: null });
    const shown = (await ada.api.gql(`{ me { ${FIELDS} } }`)).data.me;
    expect(shown).toMatchObject({
      displayName: ada.display_name,
      activeAccountId: ada.account_id,
      permissions,
      enabledFeatures: enabled_features,
      accounts: [{ id: ada.account_id, isOwner: true }],
    });
  });

  test.each([
    [{}, 'At least one field must be given'],
    [{ display_name: '  ' }, 'display_name must not be empty'],
    [{ display_name: '\u200b\u2060' }, 'display_name must not be empty'],
    [{ email: 'ada' }, 'email must be an e-mail address'],
    [{ admin_permissions: ['users:edit'] }, 'admin_permissions: is not a member of this request'],
  ])('%j is refused', async (body, message) => {
    expect(await ada.api.send('PATCH', '/v1/users/me', body)).toMatchObject({
      status: 400,
      body: { error: 'VALIDATION_ERROR', message },
    });
  });

  test('what is changed is shown at once; name and mail stand in the audit log, and in no event in clear', async () => {
    const changes = { display_name: ' Ada L. ', email: `${ada.user_id}@example.com`, streamer_mode: true };
    const { body } = await ada.api.send('PATCH', '/v1/users/me', changes);
    expect(body.data).toMatchObject({ display_name: 'Ada L.', email: changes.email, streamer_mode: true });
    expect(body.data).not.toHaveProperty('token');
    const developing = 'mutation { updateMe(input: {extensionDevMode: true}) { isDeveloper streamerMode email } }';
    expect((await ada.api.gql(developing)).data.updateMe).toEqual({
      isDeveloper: true,
      streamerMode: true,
      email: changes.email,
    });
    const cleared = await ada.api.send('PATCH', '/v1/users/me', { email: null });
    expect(cleared.body.data).toMatchObject({ display_name: 'Ada L.', email: null });
    const logged = await eventually(async () => {
      const { data } = (await ada.api.get('/v1/me/audit-log?action=profile:changed')).body;
      return data.length < 2 ? undefined : data;
    }, 'both changes in the audit log');
    expect(logged.map((entry: any) => [entry.actor.id, entry.after.display_name, entry.after.email])).toEqual([
      [ada.user_id, 'Ada L.', null],
      [ada.user_id, 'Ada L.', changes.email],
    ]);
    const db = new PostgresDatabase({ url: server.database_url, name: 'users', size: 1 });
    const stored = await db.query(`select data from domain_events where stream = $1`, [`profile-${ada.user_id}`]);
    await db.close();
    expect(stored).toHaveLength(2);
    expect(JSON.stringify(stored)).not.toContain('Ada L.');
    expect(JSON.stringify(stored)).not.toContain(changes.email);
  });

  test('a session goes on in another account of the person, with its rights there, or in none', async () => {
    const bob = await server.account();
    const member = await server.member(bob.account_id, 'viewer');
    const api = clientOf(member.access_token);
    const own = (await api.send('PATCH', '/v1/users/me', { clear_active_account: true })).body.data;
    expect(own).toMatchObject({ active_account_id: null, permissions: [], token: expect.stringMatching(/^lm_eyJ/) });
    const alone = clientOf(own.token);
    expect((await alone.get('/v1/users/me')).body.data).toMatchObject({ active_account_id: null, accounts: [{}] });
    const there = await alone.send('PATCH', '/v1/users/me', { active_account_id: bob.account_id });
    expect(there.body.data).toMatchObject({ active_account_id: bob.account_id, token: expect.any(String) });
    expect(there.body.data.permissions).toHaveLength(9);
    expect((await clientOf(there.body.data.token).get('/v1/users/me')).body.data.permissions).toHaveLength(9);
    for (const active_account_id of [ada.account_id, uuid(404)]) {
      expect(await alone.send('PATCH', '/v1/users/me', { active_account_id, display_name: 'Eve' })).toMatchObject({
        status: 403,
        body: { error: 'FORBIDDEN', message: 'This action requires membership of the account' },
      });
    }
    expect((await alone.get('/v1/users/me')).body.data.display_name).not.toBe('Eve');
  });

  test('who was sent away finds no account active, and nothing that they held there', async () => {
    const bob = await server.account();
    const member = await server.member(bob.account_id, 'administrator');
    const api = clientOf(member.access_token);
    expect((await api.get('/v1/users/me')).body.data.permissions).toHaveLength(119);
    await clientOf(bob.access_token).send(
      'DELETE',
      `/v1/accounts/${bob.account_id}/members/${member.user_id}`,
      undefined,
    );
    expect((await api.get('/v1/users/me')).body.data).toMatchObject({
      active_account_id: null,
      accounts: [],
      permissions: [],
      owned_account_count: 0,
    });
  });

  test('a key shows its own scope, and does not switch', async () => {
    const made = await ada.api.send('POST', '/v1/api-keys', { label: 'Bot', permissions: ['events:read'] });
    const key = clientOf(made.body.data.key);
    expect((await key.get('/v1/users/me')).body.data).toMatchObject({
      active_account_id: ada.account_id,
      permissions: ['events:read'],
      user_permissions: [],
    });
    expect(await key.send('PATCH', '/v1/users/me', { clear_active_account: true })).toMatchObject({
      status: 400,
      body: { error: 'BAD_REQUEST', message: 'An API key belongs to one account and cannot switch' },
    });
  });
});
