import { newEvents } from '../../app/write-path/event-ids';
import { handle } from '../../app/write-path/command-handler';
import { load } from '../../app/write-path/aggregate-cache';
import { asOperator } from '../../cli/admin/shared/operator';
import { account, accountStream, type AccountEvent } from '../../domain/accounts/accounts';
import { connections, connectionsStream } from '../../domain/connections/connections';
import { seededRoles } from '../../domain/accounts/roles';
import {
  ownership,
  ownershipStream,
  type OwnershipCommand,
  type OwnershipEvent,
} from '../../domain/accounts/ownerships';
import { FREE_PLAN_ID, PRO_PLAN_ID } from '../../domain/billing/plan-limits';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Decider } from '../../kernel/decider';
import type { DomainError } from '../../kernel/errors';
import { accounts } from '../../projections/accounts/accounts';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import type { Door } from '../support/door';
import { feed, uuid } from '../support/identity';
import { engines, type Engines } from '../support/projections';
import { Client } from '../support/realtime';
import { sharedServer, type MadeMember, type SharedServer } from '../support/shared-server';
import { eventually } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const [account_id, ada, bob] = [uuid(1), uuid(2), uuid(3)];
const created: AccountEvent = {
  type: 'account:created',
  ...{ account_id, name: null, description: null, plan: 'free', owner_id: ada, membership_id: uuid(4) },
  roles: seededRoles([uuid(11), uuid(12), uuid(13), uuid(14)]),
  created_at: now,
};
const dissolved: AccountEvent = { type: 'account:dissolved', account_id, owner_id: ada, dissolved_at: now };

describe('an account', () => {
  const given = decider(account);

  test('is described, and nothing happens when it is the same', () => {
    const described = { account_id, name: 'Studio', description: 'Late shows', changed_at: now };
    given([created])
      .when({ type: 'account:change_details', name: 'Studio', description: 'Late shows', now })
      .then({ type: 'account:details_changed', ...described });
    given([created, { type: 'account:details_changed', ...described }])
      .when({ type: 'account:change_details', name: null, now })
      .then({ type: 'account:details_changed', ...described, name: null });
    given([created]).when({ type: 'account:change_details', description: null, now }).thenNothing();
  });
  test('is dissolved by its owner alone, once and for good', () => {
    given([created]).when({ type: 'account:dissolve', user_id: bob, now }).thenFails('NOT_THE_OWNER');
    given([created]).when({ type: 'account:dissolve', user_id: ada, now }).then(dissolved);
    const moved = (plan_id: string, from_plan_id: string): AccountEvent => ({
      type: 'account:plan_changed',
      ...{ account_id, plan_id, from_plan_id, changed_at: now },
    });
    given([created, moved(PRO_PLAN_ID, FREE_PLAN_ID)])
      .when({ type: 'account:dissolve', user_id: ada, now })
      .then(moved(FREE_PLAN_ID, PRO_PLAN_ID), dissolved);
    for (const command of [
      { type: 'account:dissolve', user_id: ada, now },
      { type: 'account:remove_member', user_id: ada, now },
      { type: 'account:create_role', role_id: uuid(20), name: 'X', description: null, color: '#000000', now },
    ])
      given([created, dissolved])
        .when({ permissions: [], by: null, ...command } as never)
        .thenFails('ACCOUNT_NOT_FOUND');
  });
});

describe('accounts of one user', () => {
  const given = decider(ownership);
  const open = (more: Partial<OwnershipCommand> = {}): OwnershipCommand => ({
    ...{ type: 'ownership:open', user_id: ada, account_id, owned: [], ended: [], max_accounts: 2, several: true, now },
    ...more,
  });
  const opened = (id: string, ended: string[] = []): OwnershipEvent => ({
    ...{ type: 'ownership:opened', user_id: ada, account_id: id, ended, opened_at: now },
  });
  test('are as many as they may be, those that nobody else can see yet counted', () => {
    given([]).when(open()).then(opened(account_id));
    given([opened(uuid(8))])
      .when(open({ owned: [uuid(7)] }))
      .thenFails('PLAN_LIMIT_REACHED');
    given([opened(uuid(8))])
      .when(open({ owned: [uuid(8)] }))
      .then(opened(account_id));
    given([opened(uuid(8)), opened(uuid(7))])
      .when(open({ ended: [uuid(8)] }))
      .then(opened(account_id, [uuid(8)]));
  });
  test('are one where several are not open to them, whatever the limit', () => {
    given([])
      .when(open({ several: false }))
      .then(opened(account_id));
    given([opened(uuid(8))])
      .when(open({ several: false, max_accounts: 9 }))
      .thenFails('ONE_ACCOUNT_ONLY');
    given([])
      .when(open({ max_accounts: 0 }))
      .thenFails('PLAN_LIMIT_REACHED');
  });
});

test('the read model keeps nothing of a dissolved account, and shows the same rows when a page comes twice', async () => {
  const t = await testDatabase();
  const tables = ['accounts', 'account_roles', 'account_members', 'account_invites', 'account_login_assignments'];
  const count = async () =>
    Promise.all(tables.map(async (name) => (await t.db.query(`select count(*)::int as n from ${name}`))[0]!.n));
  const login_connection_id = uuid(41);
  const page: AccountEvent[] = [
    created,
    { type: 'account:details_changed', account_id, name: 'Studio', description: 'Late', changed_at: now },
    {
      type: 'account:login_assigned',
      ...{ account_id, assignment_id: uuid(40), user_id: ada, login_connection_id, provider: 'twitch' },
      assigned_at: now,
    },
    { type: 'account:primary_login_set', account_id, login_connection_id, set_at: now },
    {
      type: 'account:invite_created',
      ...{ account_id, invite_id: uuid(30), code_hash: 'h', code_prefix: 'h', role_id: uuid(14), made_by: ada },
      ...{ made_with: null, max_uses: 1, expires_at: null, created_at: now },
    },
  ];
  await feed(t.db, accounts, page, 2);
  expect(await count()).toEqual([1, 4, 1, 1, 1]);
  expect(await t.db.query('select name, description, primary_login_connection_id as login from accounts')).toEqual([
    { name: 'Studio', description: 'Late', login: login_connection_id },
  ]);
  await feed(t.db, accounts, [dissolved], 2);
  expect(await count()).toEqual([0, 0, 0, 0, 0]);
  await t.drop();
});

test('of two nodes that decide at once one goes first, and the other is told what is then the case', async () => {
  const t = await testDatabase();
  const nodes = [await engines(t.db), await engines(t.db)];
  const each = async <Command extends { now: string }>(
    decider: Decider<never, never, never>,
    stream: string,
    commands: readonly Command[],
  ) => {
    const decided = commands.map((command, n) => {
      const { events } = nodes[n]!;
      const services = {
        ...{ events, awaitShown: async () => undefined },
        commit: (_request: unknown, writes: Parameters<typeof events.append>[0]) => events.append(writes, {}),
      };
      return handle(asOperator('test'), services, { decider, stream, command: command as never });
    });
    const settled = await Promise.allSettled(decided);
    return settled.map((one) => (one.status === 'fulfilled' ? 'decided' : (one.reason as DomainError).reason)).sort();
  };
  const open = { type: 'ownership:open', user_id: ada, owned: [], ended: [], max_accounts: 1, several: true, now };
  expect(
    await each(ownership as never, ownershipStream(ada), [
      { ...open, account_id: uuid(7) },
      { ...open, account_id: uuid(8) },
    ]),
  ).toEqual(['PLAN_LIMIT_REACHED', 'decided']);

  const stream = accountStream(account_id);
  const invite: AccountEvent = {
    type: 'account:invite_created',
    ...{ account_id, invite_id: uuid(30), code_hash: 'h', code_prefix: 'h', role_id: uuid(14), made_by: ada },
    ...{ made_with: null, max_uses: 1, expires_at: null, created_at: now },
  };
  const events = newEvents({ idempotency_seed: null }, stream, [created, invite]);
  await nodes[0]!.events.append([{ stream, expected: 'none', events }], {});
  const accept = { type: 'account:accept_invite', invite_id: uuid(30), now };
  expect(
    await each(account as never, stream, [
      { ...accept, user_id: bob, membership_id: uuid(5) },
      { ...accept, user_id: uuid(4), membership_id: uuid(6) },
    ]),
  ).toEqual(['INVITE_USED_UP', 'decided']);
  for (const node of nodes) await node.close();
  await t.drop();
});

describe('on the server', () => {
  let server: SharedServer;
  let db: PostgresDatabase;
  let on: Engines;
  beforeAll(async () => {
    server = await sharedServer();
    db = new PostgresDatabase({ url: server.database_url, name: 'test', size: 2 });
    on = await engines(db);
  });
  afterAll(async () => {
    await on.close();
    await db.close();
  });
  /** What an operator would set. */
  const allow = (user_id: string, max_accounts: number | null, creation = 'default') =>
    db.query(
      `insert into user_overrides (user_id, max_accounts, account_creation) values ($1, $2, $3)
       on conflict (user_id) do update set max_accounts = $2, account_creation = $3`,
      [user_id, max_accounts, creation],
    );
  const create = (door: Door, body: object = {}) => door.rest('POST', '/v1/accounts', { body });
  const MUTATION = 'mutation($input: CreateAccountInput!) { createAccount(input: $input) { account { id } token } }';

  test('an account is made with its roles and its owner, who goes on in it in every session', async () => {
    const ada = await server.account();
    const elsewhere = await server.session(ada.user_id, ada.account_id);
    await allow(ada.user_id, 2);
    const body = { name: ' Studio ', description: 'Late shows', plan: 'pro' };
    const made = await create(ada.door, body);
    expect(made.status).toBe(201);
    const { token, ...data } = made.json.data;
    expect(made.headers.get('location')).toMatch(new RegExp(`/v1/accounts/${data.id}$`));
    expect(data).toMatchObject({
      ...{ name: 'Studio', description: 'Late shows', plan: 'free', owner_id: ada.user_id, avatar_url: null },
      primary_login_connection_id: null,
    });
    const inside = server.door(token);
    expect((await inside.rest('GET', '/v1/tokens/me')).json.data.permissions).toHaveLength(123);
    expect((await inside.rest('GET', '/v1/roles')).json.data).toHaveLength(4);
    const connected = { bot_connections: [], channel_connections: [] };
    expect((await inside.rest('GET', `/v1/accounts/${data.id}`)).json.data).toEqual({ ...data, ...connected });

    const refresh = { refresh_token: elsewhere.refresh_token };
    const refreshed = await server.door('').rest('POST', '/v1/auth/refresh', { body: refresh });
    const there = await server.door(refreshed.json.token).rest('GET', '/v1/roles');
    expect(there.json.data[0].account_id).toBe(data.id);

    const listed = (await inside.rest('GET', '/v1/accounts')).json.data;
    expect(listed).toMatchObject([
      { id: ada.account_id, is_owner: true, role: { slug: 'owner', name: 'Owner' } },
      { id: data.id, is_owner: true, role: { slug: 'owner', color: '#f59e0b' } },
    ]);
    const { json } = await inside.gql('{ accounts { id isOwner role { slug } } }');
    expect(json.data.accounts.map(({ id }: { id: string }) => id)).toEqual([ada.account_id, data.id]);
  });

  test('without a name it is called what its owner is called', async () => {
    const { user_id, display_name } = await server.user();
    const { account_id } = await server.account();
    await server.operator.setMembership(account_id, user_id, 'viewer');
    const { door } = await server.session(user_id, account_id);
    const made = await door.gql(MUTATION, { variables: { input: {} } });
    const { account: own, token } = made.json.data.createAccount;
    const inside = server.door(token);
    expect((await inside.rest('GET', `/v1/accounts/${own.id}`)).json.data.name).toBe(display_name);
    const stored = (await on.events.read(accountStream(own.id)))[0]!;
    expect(JSON.stringify(stored.data)).not.toContain(display_name);
    expect(stored.metadata).toMatchObject({ actor_id: user_id, account_id: own.id });
    const body = { name: 'Mine', description: '' };
    const renamed = await inside.rest('PATCH', `/v1/accounts/${own.id}`, { body });
    expect(renamed.json.data).toMatchObject({ name: 'Mine', description: null });
    expect(await inside.rest('PATCH', `/v1/accounts/${own.id}`, { body: {} })).toMatchObject({
      status: 400,
      json: { error: 'VALIDATION_ERROR', message: 'Nothing to change was given' },
    });
  });

  test('none is made by whom the operator keeps from it', async () => {
    const { door, user_id } = await server.account();
    await allow(user_id, 9, 'deny');
    const refused = 'Account creation is currently disabled';
    expect(await create(door)).toMatchObject({
      status: 403,
      json: { error: refused, error_code: 'account_creation_disabled' },
    });
    expect((await door.gql(MUTATION, { variables: { input: {} } })).json.errors[0]).toMatchObject({
      message: refused,
      extensions: { code: 'ACCOUNT_CREATION_DISABLED' },
    });
  });

  test('one too many is refused by the feature first, then by the plan', async () => {
    const { door, account_id } = await server.account();
    expect(await create(door)).toMatchObject({
      status: 403,
      json: { error: 'PLAN_LIMIT_REACHED', message: 'Plan limit reached: max_accounts' },
    });
    await server.operator.setFeatures(account_id, { 'feature:multi_account': false });
    // Set beside the node, which remembers for less than a second.
    const answer = await eventually(async () => {
      const { status, json } = await create(door);
      return json.error === 'PLAN_LIMIT_REACHED' ? undefined : { status, json };
    }, 'the switch');
    expect(answer).toMatchObject({
      status: 403,
      json: { error: 'FEATURE_DISABLED', message: 'Feature not enabled: feature:multi_account' },
    });
  });

  test('several made at once are no more than there may be, and one key makes one', async () => {
    const { door, user_id } = await server.account();
    await allow(user_id, 3);
    const answers = await Promise.all([1, 2, 3, 4, 5].map((n) => create(door, { name: `Studio ${n}` })));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 403, 403, 403]);
    await allow(user_id, 9);
    const headers = { 'idempotency-key': 'once' };
    const once = () => door.rest('POST', '/v1/accounts', { body: { name: 'Once' }, headers });
    const [first, second] = [await once(), await once()];
    expect(second.json).toEqual(first.json);
    expect((await door.rest('GET', '/v1/accounts')).json.data).toHaveLength(4);
  });

  test.each([
    [{ plan: 'No' }, 'Invalid slug format'],
    [{ plan: 'made-up' }, 'plan: there is no plan of this slug'],
    [{ name: ' ' }, 'name must not be empty'],
    [{ owner_id: 'me' }, 'owner_id: is not a member of this request'],
    [{ account_id: 'mine' }, 'account_id: is not a member of this request'],
  ])('%j is refused', async (body, message) => {
    const { door, user_id } = await server.account();
    await allow(user_id, 9);
    expect(await create(door, body)).toMatchObject({ status: 400, json: { error: 'VALIDATION_ERROR', message } });
  });

  test('a dissolved account is nowhere at once, and leaves room for another', async () => {
    const home = await server.account();
    const { door, user_id, account_id, name } = home;
    const guest = await server.member(account_id, 'administrator');
    const label = { label: 'Bot', permissions: ['events:read'] };
    const made = [
      (await guest.door.rest('POST', '/v1/api-keys', { body: label })).json.data.key,
      (await door.rest('POST', '/v1/service-keys', { body: label })).json.data.key,
      (await door.rest('POST', '/v1/tokens', { body: label })).json.data.token,
    ].map((token: string) => server.door(token));
    const alive = () => Promise.all(made.map(async (one) => (await one.rest('GET', '/v1/events')).status));
    expect(await alive()).toEqual([200, 200, 200]);
    const shop = { account_id, shop_domain: `${account_id}.myshopify.com`, secret: 's' };
    await server.operator.connectShop(shop);
    const socket = await Client.open(server.ws_url, guest.access_token);
    expect(await socket.subscribe(`events:${account_id}`)).toMatchObject({ type: 'subscribed' });
    const invite = { role_id: (await door.rest('GET', '/v1/roles')).json.data[3].id };
    const { code } = (await door.rest('POST', `/v1/accounts/${account_id}/invites`, { body: invite })).json.data;

    const path = `/v1/accounts/${account_id}`;
    const dissolve = (as: Door, confirm_name: string) => as.rest('DELETE', path, { body: { confirm_name } });
    expect(await dissolve(guest.door, name)).toMatchObject({
      status: 403,
      json: { message: 'Missing permission: account:delete' },
    });
    expect(await dissolve(door, name.toUpperCase())).toMatchObject({
      status: 400,
      json: { error: 'VALIDATION_ERROR', message: "confirm_name must be the account's name, exactly" },
    });
    const answer = await dissolve(door, name);
    expect(answer).toMatchObject({ status: 200, json: { success: true } });

    expect(await alive()).toEqual([401, 401, 401]);
    expect((await door.rest('GET', path)).status).toBe(403);
    expect((await guest.door.rest('GET', '/v1/events')).status).toBe(403);
    expect((await server.door('').rest('GET', `/v1/invites/${code}`)).status).toBe(404);
    const lost = await socket.next(({ type }) => type === 'error', 'the end of the channel');
    expect(lost).toMatchObject({ code: 'UNAUTHORIZED', channel: `events:${account_id}` });
    await socket.ask({ type: 'ping' }, 'pong');
    socket.end();
    const after = server.door(answer.json.token);
    expect((await after.rest('GET', '/v1/accounts')).json.data).toEqual([]);
    expect((await create(after, { name: 'Next' })).status).toBe(201);
    expect((await door.rest('GET', '/v1/accounts')).json.data).toMatchObject([{ name: 'Next', owner_id: user_id }]);

    // What follows by itself: its shop is free for others, and no session points at it.
    await eventually(async () => {
      const known = await load(on.events, connections, connectionsStream(account_id));
      const sessions = await db.query('select 1 from user_sessions where active_account_id = $1', [account_id]);
      return known!.state.shops.size + sessions.length === 0 ? true : undefined;
    }, 'the end of its connections and sessions');
    const other: MadeMember = await server.account();
    await server.operator.connectShop({ ...shop, account_id: other.account_id });
  });
});
