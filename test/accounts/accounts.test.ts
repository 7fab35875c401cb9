import { UPCASTERS } from '../../bin/areas';
import { seededRoles } from '../../domain/accounts/roles';
import { account, type AccountEvent } from '../../domain/accounts/accounts';
import { connections, type ConnectionEvent } from '../../domain/connections/connections';
import { user, type UserEvent } from '../../domain/identity/users';
import { accounts } from '../../projections/accounts/accounts';
import { connections as connectionsModel } from '../../projections/connections/connections';
import { users } from '../../projections/identity/users';
import type { JsonObject } from '../../lib/json/json';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';
import { feed, uuid } from '../support/identity';

const now = '2026-01-02T03:04:05.000Z';
const [account_id, ada, bob, membership_id, other_membership] = [uuid(1), uuid(2), uuid(3), uuid(4), uuid(5)];
const role_ids = [uuid(11), uuid(12), uuid(13), uuid(14)];
const [owner_role, , moderator_role, viewer_role] = role_ids as [string, string, string, string];

const created: AccountEvent = {
  type: 'account:created',
  account_id,
  name: 'Ada',
  description: null,
  plan: 'free',
  owner_id: ada,
  roles: seededRoles(role_ids),
  membership_id,
  created_at: now,
};
const joined: AccountEvent = {
  type: 'account:member_added',
  account_id,
  membership_id: other_membership,
  user_id: bob,
  role_id: viewer_role,
  added_at: now,
};

describe('accounts', () => {
  const given = decider(account);

  test('are created with four roles and their owner', () =>
    given([])
      .when({ type: 'account:create', account_id, name: 'Ada', owner_id: ada, membership_id, role_ids, now })
      .then(created));
  test('list what each role may do, but not the Owner, who holds all there will ever be', () => {
    const [owner, administrator] = seededRoles(role_ids);
    expect(owner).toMatchObject({ slug: 'owner', permissions: null });
    expect(administrator!.permissions).toHaveLength(119);
    const { type, ...data } = created;
    const { description: _none, plan: _free, ...known } = data;
    const first = {
      ...known,
      roles: data.roles.map(({ description: _about, color: _paint, is_default: _seeded, ...role }) => ({
        ...role,
        permissions: role.permissions ?? ['chat:read'],
      })),
    };
    expect(UPCASTERS.read({ type, data: first as JsonObject }).data).toEqual(data);
  });
  test('take a member once', () =>
    given([created, joined])
      .when({ type: 'account:add_member', membership_id: uuid(6), user_id: bob, role_id: viewer_role, now })
      .thenFails('ALREADY_A_MEMBER'));
  test('hand out no second ownership', () =>
    given([created])
      .when({ type: 'account:add_member', membership_id: uuid(6), user_id: bob, role_id: owner_role, now })
      .thenFails('ONE_OWNER'));
  test('know only their own roles', () =>
    given([created])
      .when({ type: 'account:add_member', membership_id: uuid(6), user_id: bob, role_id: uuid(99), now })
      .thenFails('ROLE_NOT_FOUND'));
  test('keep their owner', () =>
    given([created]).when({ type: 'account:remove_member', user_id: ada, now }).thenFails('OWNER_STAYS'));
  test('let a member go', () =>
    given([created, joined]).when({ type: 'account:remove_member', user_id: bob, now }).then({
      type: 'account:member_removed',
      account_id,
      membership_id: other_membership,
      user_id: bob,
      removed_at: now,
    }));
  test('pass to another owner as a whole, once', () => {
    const replace = { type: 'account:replace_owner', user_id: bob, membership_id: uuid(6), now } as const;
    const [, administrator] = role_ids as [string, string];
    const replaced: AccountEvent = {
      type: 'account:owner_replaced',
      account_id,
      owner_id: bob,
      former_owner_id: ada,
      former_role_id: administrator,
      replaced_at: now,
    };
    const removed: AccountEvent = {
      type: 'account:member_removed',
      account_id,
      membership_id,
      user_id: ada,
      removed_at: now,
    };
    const whole = { ...joined, membership_id: uuid(6), role_id: owner_role };
    given([created, joined])
      .when({ ...replace, former_role_id: administrator })
      .then(replaced);
    given([created])
      .when({ ...replace, former_role_id: null })
      .then(whole, { ...replaced, former_role_id: null }, removed);
    given([created, joined, replaced])
      .when({ ...replace, former_role_id: null })
      .thenNothing();
    given([created, joined, replaced])
      .when({ type: 'account:remove_member', user_id: bob, now })
      .thenFails('OWNER_STAYS');
    given([created, joined])
      .when({ ...replace, former_role_id: owner_role })
      .thenFails('ONE_OWNER');
  });
  test('change a role, and nothing when it is the same', () => {
    given([created, joined])
      .when({ type: 'account:change_member_role', user_id: bob, role_id: moderator_role, now })
      .then({
        type: 'account:member_role_changed',
        account_id,
        user_id: bob,
        role_id: moderator_role,
        changed_at: now,
      });
    given([created, joined])
      .when({ type: 'account:change_member_role', user_id: bob, role_id: viewer_role, now })
      .thenNothing();
  });
  test('override known features, each once', () => {
    const set: AccountEvent = {
      type: 'account:feature_override_set',
      account_id,
      flag: 'feature:events',
      enabled: true,
      set_at: now,
    };
    given([created, set])
      .when({
        type: 'account:set_feature_overrides',
        overrides: { 'feature:events': true, 'feature:sounds': null },
        now,
      })
      .thenNothing();
    given([created, set])
      .when({ type: 'account:set_feature_overrides', overrides: { 'feature:events': null }, now })
      .then({ ...set, enabled: null });
    given([created])
      .when({ type: 'account:set_feature_overrides', overrides: { 'feature:eventz': true }, now })
      .thenFails('UNKNOWN_FLAG');
  });
});

describe('users', () => {
  const given = decider(user);
  const registered: UserEvent = {
    type: 'user:registered',
    user_id: ada,
    registered_at: now,
  };
  const assigned: UserEvent = { type: 'user:admin_role_assigned', user_id: ada, role: 'super-admin', assigned_at: now };

  test('register once', () =>
    given([registered]).when({ type: 'user:register', user_id: ada, now }).thenFails('USER_EXISTS'));
  test('hold admin roles', () => {
    given([registered]).when({ type: 'user:assign_admin_role', role: 'super-admin', now }).then(assigned);
    given([registered, assigned]).when({ type: 'user:assign_admin_role', role: 'super-admin', now }).thenNothing();
  });
});

describe('connections', () => {
  const given = decider(connections);
  const connected: ConnectionEvent = {
    type: 'connection:channel_connected',
    account_id,
    connection_id: uuid(20),
    platform: 'kick',
    platform_channel_id: '123',
    connected_at: now,
  };
  const connect = {
    type: 'connection:connect_channel',
    account_id,
    platform: 'kick',
    now,
  } as const;

  test('one channel per platform', () => {
    given([])
      .when({ ...connect, connection_id: uuid(20), platform_channel_id: '123' })
      .then(connected);
    given([connected])
      .when({ ...connect, connection_id: uuid(21), platform_channel_id: '123' })
      .thenNothing();
    given([connected])
      .when({ ...connect, connection_id: uuid(21), platform_channel_id: '456' })
      .thenFails('PLATFORM_ALREADY_CONNECTED');
  });
  test('shop domains are one whatever their case', () =>
    given([
      {
        type: 'connection:shop_connected',
        account_id,
        connection_id: uuid(22),
        shop_domain: 'a.myshopify.com',
        connected_at: now,
      },
    ])
      .when({
        type: 'connection:connect_shop',
        account_id,
        connection_id: uuid(23),
        shop_domain: 'A.MyShopify.com',
        now,
      })
      .thenNothing());
});

describe('read models', () => {
  let t: TestDatabase;
  beforeAll(async () => void (t = await testDatabase()));
  afterAll(() => t.drop());

  test('show the same rows when a page comes twice, and announce what changed', async () => {
    const page: (AccountEvent | UserEvent)[] = [
      created,
      joined,
      { type: 'account:member_role_changed', account_id, user_id: bob, role_id: moderator_role, changed_at: now },
      { type: 'account:feature_override_set', account_id, flag: 'feature:events', enabled: true, set_at: now },
      { type: 'account:feature_override_set', account_id, flag: 'feature:events', enabled: null, set_at: now },
      { type: 'account:feature_override_set', account_id, flag: 'feature:sounds', enabled: false, set_at: now },
      { type: 'account:feature_override_set', account_id, flag: 'feature:sounds', enabled: true, set_at: now },
    ];
    await feed(t.db, accounts, page, 2);
    const roles = await t.db.query(
      'select slug, position, cardinality(permissions) as held from account_roles order by position',
    );
    expect(roles.map((role) => [role.slug, role.position, role.held])).toEqual([
      ['owner', 1, 123],
      ['administrator', 2, 119],
      ['moderator', 3, 43],
      ['viewer', 4, 9],
    ]);
    expect(await t.db.query('select slug from account_roles where holds_all')).toEqual([{ slug: 'owner' }]);
    const members = await t.db.query('select user_id, role_id from account_members order by user_id');
    expect(members).toEqual([
      { user_id: ada, role_id: owner_role },
      { user_id: bob, role_id: moderator_role },
    ]);
    expect(await t.db.query('select flag, enabled from account_feature_overrides')).toEqual([
      { flag: 'feature:sounds', enabled: true },
    ]);
    expect((await t.db.query('select 1 from revocations where user_id = $1', [bob])).length).toBeGreaterThan(0);

    const passed = { type: 'account:owner_replaced', account_id, replaced_at: now } as const;
    const back: AccountEvent = { ...passed, owner_id: ada, former_owner_id: bob, former_role_id: moderator_role };
    await feed(t.db, accounts, [{ ...passed, owner_id: bob, former_owner_id: ada, former_role_id: viewer_role }]);
    const owners = () =>
      t.db.query(
        `select a.owner_id, m.user_id, r.slug from accounts a join account_members m on m.account_id = a.id
         join account_roles r on r.id = m.role_id order by m.user_id`,
      );
    expect(await owners()).toEqual([
      { owner_id: bob, user_id: ada, slug: 'viewer' },
      { owner_id: bob, user_id: bob, slug: 'owner' },
    ]);
    await feed(t.db, accounts, [back], 2);
    expect(await owners()).toEqual([
      { owner_id: ada, user_id: ada, slug: 'owner' },
      { owner_id: ada, user_id: bob, slug: 'moderator' },
    ]);

    await feed(
      t.db,
      accounts,
      [{ type: 'account:member_removed', account_id, membership_id: other_membership, user_id: bob, removed_at: now }],
      2,
    );
    expect(await t.db.query('select user_id from account_members')).toEqual([{ user_id: ada }]);
  });

  test('of users and connections', async () => {
    const registered: UserEvent = {
      type: 'user:registered',
      user_id: ada,
      registered_at: now,
    };
    await feed(
      t.db,
      users,
      [registered, { type: 'user:admin_role_assigned', user_id: ada, role: 'super-admin', assigned_at: now }],
      2,
    );
    expect(await t.db.query('select u.id, r.role from users u join user_admin_roles r on r.user_id = u.id')).toEqual([
      { id: ada, role: 'super-admin' },
    ]);
    const channel = (id: number, platform_channel_id: string): ConnectionEvent => ({
      type: 'connection:channel_connected',
      account_id,
      connection_id: uuid(id),
      platform: 'kick',
      platform_channel_id,
      connected_at: now,
    });
    await feed(
      t.db,
      connectionsModel,
      [
        channel(30, '1'),
        {
          type: 'connection:channel_disconnected',
          account_id,
          connection_id: uuid(30),
          platform: 'kick',
          disconnected_at: now,
        },
        channel(31, '2'),
      ],
      2,
    );
    expect(await t.db.query('select id, platform_channel_id from channel_connections')).toEqual([
      { id: uuid(31), platform_channel_id: '2' },
    ]);
  });
});
