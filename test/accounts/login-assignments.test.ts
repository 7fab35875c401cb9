import { randomUUID } from 'node:crypto';
import { newEvents } from '../../app/write-path/event-ids';
import { actAsService } from '../../app/service-calls';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { account, accountStream, type AccountEvent } from '../../domain/accounts/accounts';
import { seededRoles } from '../../domain/accounts/roles';
import { userStream, type UserEvent } from '../../domain/identity/users';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { accounts } from '../../projections/accounts/accounts';
import { lostLogins } from '../../reactors/accounts/login-assignments';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import type { Door } from '../support/door';
import { feed, uuid } from '../support/identity';
import { engines } from '../support/projections';
import { Client } from '../support/realtime';
import { sharedServer, type MadeMember, type SharedServer } from '../support/shared-server';
import { eventually } from '../support/vendor-cloud';

const now = '2026-01-02T03:04:05.000Z';
const [account_id, ada, bob, login, other] = [uuid(1), uuid(2), uuid(3), uuid(41), uuid(42)];
const created: AccountEvent = {
  type: 'account:created',
  ...{ account_id, name: 'Ada', description: null, plan: 'free', owner_id: ada, membership_id: uuid(4) },
  roles: seededRoles([uuid(11), uuid(12), uuid(13), uuid(14)]),
  created_at: now,
};
const assigned = (login_connection_id: string, assignment_id = uuid(50)): AccountEvent => ({
  type: 'account:login_assigned',
  ...{ account_id, assignment_id, user_id: ada, login_connection_id, provider: 'twitch', assigned_at: now },
});
const unassigned: AccountEvent = {
  type: 'account:login_unassigned',
  ...{ account_id, user_id: ada, provider: 'twitch', unassigned_at: now },
};
const primary = (login_connection_id: string | null): AccountEvent => ({
  type: 'account:primary_login_set',
  ...{ account_id, login_connection_id, set_at: now },
});

describe('a login on an account', () => {
  const given = decider(account);
  const of = { user_id: ada, provider: 'twitch', now } as const;
  const assign = (login_connection_id: string, user_id = ada) =>
    ({ type: 'account:assign_login', assignment_id: uuid(50), login_connection_id, ...of, user_id }) as const;

  test('is one for each member and provider', () => {
    given([created]).when(assign(login)).then(assigned(login));
    given([created, assigned(login)])
      .when(assign(login))
      .thenNothing();
    given([created, assigned(login)])
      .when(assign(other))
      .then(assigned(other));
    given([created]).when(assign(login, bob)).thenFails('MEMBER_NOT_FOUND');
  });
  test('is taken off, once', () => {
    const unassign = { type: 'account:unassign_login', ...of } as const;
    given([created, assigned(login)])
      .when(unassign)
      .then(unassigned);
    given([created, assigned(login), unassigned])
      .when(unassign)
      .thenFails('ASSIGNMENT_NOT_FOUND');
  });
  test('stays while the account is shown with it', () => {
    const shown = [created, assigned(login), primary(login)];
    given(shown)
      .when({ type: 'account:unassign_login', ...of })
      .thenFails('PRIMARY_LOGIN');
    given(shown).when(assign(other)).thenFails('PRIMARY_LOGIN');
    given([...shown, primary(null)])
      .when({ type: 'account:unassign_login', ...of })
      .then(unassigned);
  });
  test("is shown by the owner's word alone", () => {
    const set = { type: 'account:set_primary_login', login_connection_id: login, now } as const;
    given([created])
      .when({ ...set, user_id: ada })
      .then(primary(login));
    given([created, primary(login)])
      .when({ ...set, user_id: ada })
      .thenNothing();
    given([created])
      .when({ ...set, user_id: bob })
      .thenFails('NOT_THE_OWNER');
  });
  test('is forgotten with the login, and with its owner', () => {
    const forget = { type: 'account:forget_login', user_id: ada, login_connection_id: login, now } as const;
    given([created, assigned(login), primary(login)])
      .when(forget)
      .then(primary(null), unassigned);
    given([created, assigned(other)])
      .when(forget)
      .thenNothing();
    const replace = { user_id: bob, membership_id: uuid(6), former_role_id: null, now } as const;
    given([created, assigned(login), primary(login)])
      .when({ type: 'account:replace_owner', ...replace })
      .then(
        primary(null),
        {
          type: 'account:member_added',
          ...{ account_id, membership_id: uuid(6), user_id: bob, role_id: uuid(11), added_at: now },
        },
        {
          type: 'account:owner_replaced',
          ...{ account_id, owner_id: bob, former_owner_id: ada, former_role_id: null, replaced_at: now },
        },
        unassigned,
        { type: 'account:member_removed', account_id, membership_id: uuid(4), user_id: ada, removed_at: now },
      );
  });
});

test('the read model shows the same rows when a page comes twice, and names the provider alone on the channel', async () => {
  const t = await testDatabase();
  await feed(t.db, accounts, [created, assigned(login), assigned(other, uuid(51)), primary(other)], 2);
  expect(await t.db.query('select id, login_connection_id, provider from account_login_assignments')).toEqual([
    { id: uuid(51), login_connection_id: other, provider: 'twitch' },
  ]);
  await feed(t.db, accounts, [primary(null), unassigned], 2);
  expect(await t.db.query('select 1 from account_login_assignments')).toEqual([]);
  expect(await t.db.query('select primary_login_connection_id as login from accounts')).toEqual([{ login: null }]);
  await t.drop();
});

test('one that is assigned when it is taken away already is forgotten', async () => {
  const t = await testDatabase();
  const on = await engines(t.db);
  const { events } = on;
  const act = actAsService('login-assignments', events);
  const appended = async (stream: string, ...decided: (AccountEvent | UserEvent)[]) => {
    const { revisions } = await events.append(
      [{ stream, expected: 'any', events: newEvents({ idempotency_seed: null }, stream, decided) }],
      {},
    );
    for (const event of await events.read(stream, revisions[stream]! - decided.length + 1)) {
      const kept: [string, readonly unknown[]][] = [];
      const keep = (text: string, values: readonly unknown[]) => void kept.push([text, values]);
      await lostLogins.react(event, { act, db: t.db, keep, enqueue: () => undefined, cancel: () => undefined, now });
      for (const [text, values] of kept) await t.db.query(text, values);
    }
  };
  await appended(accountStream(account_id), created);
  await appended(userStream(ada), {
    type: 'user:login_disconnected',
    ...{ user_id: ada, login_connection_id: login, provider: 'twitch', identity: 'x', disconnected_at: now },
    ...{ removed_with: null, session_id: null },
  });
  await appended(accountStream(account_id), assigned(login), primary(login));
  const { state } = await aggregateCacheOf(events).load(account, accountStream(account_id));
  expect([state.logins.size, state.primary_login]).toEqual([0, null]);
  expect(await t.db.query('select 1 from login_places')).toEqual([]);
  await on.close();
  await t.drop();
});

describe('on the server', () => {
  let server: SharedServer;
  let db: PostgresDatabase;
  let home: MadeMember & { door: Door };
  let guest: MadeMember & { door: Door };
  /** Ids of logins. */
  let twitch: string;
  let google: string;
  let theirs: string;
  beforeAll(async () => {
    server = await sharedServer();
    db = new PostgresDatabase({ url: server.database_url, name: 'test', size: 2 });
    home = await server.account();
    guest = await server.member(home.account_id, 'viewer');
    [twitch, google, theirs] = [
      await loginOf(home.user_id, 'twitch'),
      await loginOf(home.user_id, 'google'),
      await loginOf(guest.user_id, 'kick'),
    ];
  });
  afterAll(() => db.close());

  async function loginOf(user_id: string, provider: 'twitch' | 'google' | 'kick'): Promise<string> {
    const login = { provider, provider_id: randomUUID() };
    await server.operator.createUser({ user_id, display_name: 'known already', login });
    const rows = await db.query('select id from login_connections where user_id = $1 and provider = $2', [
      user_id,
      provider,
    ]);
    return rows[0]!.id as string;
  }
  const PATH = '/v1/accounts/login-assignments';
  const assign = (door: Door, body: object) => door.rest('POST', PATH, { body });

  test('one assigns, sees and removes one of their own logins, and whoever listens hears of which provider', async () => {
    const socket = await Client.open(server.ws_url, null);
    const channel = `login-assignments:${home.account_id}`;
    expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    const made = await assign(home.door, { login_connection_id: google, provider: 'youtube' });
    expect(made).toMatchObject({
      status: 201,
      json: { data: { provider: 'youtube', login_connection_id: google, user_id: home.user_id } },
    });
    expect((await home.door.rest('GET', PATH)).json.data).toEqual([made.json.data]);
    const again = await assign(home.door, { login_connection_id: google, provider: 'google' });
    expect(again.json.data).toEqual(made.json.data);
    const fields = '{ id accountId userId loginConnectionId provider createdAt }';
    const { json } = await home.door.gql(`{ accountLoginAssignments ${fields} }`);
    const { id, assigned_at } = made.json.data;
    expect(json.data.accountLoginAssignments).toEqual([
      {
        ...{ id, accountId: home.account_id, userId: home.user_id, loginConnectionId: google, provider: 'youtube' },
        createdAt: assigned_at,
      },
    ]);
    expect((await home.door.rest('DELETE', `${PATH}/youtube`)).status).toBe(204);
    expect(await home.door.rest('DELETE', `${PATH}/youtube`)).toMatchObject({
      status: 404,
      json: { message: 'Login assignment not found' },
    });
    await socket.until(() => socket.events(channel).length === 2, 'two messages');
    expect(socket.events(channel)).toEqual([{ provider: 'youtube' }, { provider: 'youtube' }]);
    socket.end();
  });

  test("another member's are read and changed by permission, and are their own", async () => {
    const of = { login_connection_id: theirs, provider: 'kick', user_id: guest.user_id };
    expect((await assign(home.door, of)).status).toBe(201);
    expect((await home.door.rest('GET', `${PATH}?user_id=${guest.user_id}`)).json.data).toHaveLength(1);
    expect((await guest.door.rest('GET', PATH)).json.data).toHaveLength(1);
    const refused = [
      await guest.door.rest('GET', `${PATH}?user_id=${home.user_id}`),
      await assign(guest.door, { login_connection_id: twitch, provider: 'twitch', user_id: home.user_id }),
      await guest.door.rest('DELETE', `${PATH}/kick?user_id=${home.user_id}`),
      await assign(guest.door, { login_connection_id: twitch, provider: 'twitch' }),
      await assign(home.door, { login_connection_id: twitch, provider: 'kick' }),
      await assign(home.door, { login_connection_id: theirs, provider: 'kick', user_id: server.credentials.user_id }),
      await assign(home.door, { login_connection_id: twitch, provider: 'myspace' }),
    ];
    expect(refused.map(({ status, json }) => [status, json.message])).toEqual([
      [403, 'Missing permission: login-assignments:read'],
      [403, 'Missing permission: login-assignments:create'],
      [403, 'Missing permission: login-assignments:delete'],
      [404, 'Login connection not found'],
      [400, 'provider: the login connection is of another provider'],
      [404, 'Member not found'],
      [400, expect.stringContaining('provider: Invalid option')],
    ]);
    const remove = `mutation { removeLoginAssignment(provider: "kick", userId: "${guest.user_id}") }`;
    const { json } = await home.door.gql(remove);
    expect(json).toEqual({ data: { removeLoginAssignment: true } });
  });

  test('the owner says which login the account is shown with, and it stays until they choose another', async () => {
    await db.query(
      `insert into login_grants (login_connection_id, user_id, provider_account_id, username, avatar_url, scopes, sealed)
       values ($1, $2, 'x', $3, 'https://pictures.example/ada.png', '{}', '')`,
      [twitch, home.user_id, `streamer_${home.user_id.slice(-8)}`],
    );
    await assign(home.door, { login_connection_id: twitch, provider: 'twitch' });
    const set = (door: Door, login_connection_id: string | null) =>
      door.rest('PUT', '/v1/accounts/primary-connection', { body: { login_connection_id } });
    expect(await set(guest.door, theirs)).toMatchObject({
      status: 403,
      json: { message: 'Only the owner can change the primary login connection' },
    });
    expect((await set(home.door, theirs)).status).toBe(404);
    expect((await set(home.door, twitch)).json.data).toMatchObject({
      ...{ primary_login_connection_id: twitch, avatar_url: 'https://pictures.example/ada.png' },
    });
    const refused = 'The account is shown with this login connection: choose another one for it first';
    expect((await home.door.rest('DELETE', `${PATH}/twitch`)).json).toEqual({ error: 'CONFLICT', message: refused });
    expect((await home.door.rest('DELETE', `/v1/login-connections/${twitch}`)).status).toBe(409);
    expect((await set(home.door, null)).json.data).toMatchObject({
      primary_login_connection_id: null,
      avatar_url: null,
    });

    // Taken away as a login, it is acted with nowhere.
    expect((await home.door.rest('DELETE', `/v1/login-connections/${twitch}`)).status).toBe(204);
    await eventually(
      async () => ((await home.door.rest('GET', PATH)).json.data.length === 0 ? true : undefined),
      'the end of the assignment',
    );
  });

  test('people are found by how their names begin, members are not', async () => {
    const person = await server.account();
    const name = `Zoë_${person.user_id.slice(-8)}`;
    await db.query('update profiles set display_name = $2 where user_id = $1', [person.user_id, name]);
    const login = await loginOf(person.user_id, 'google');
    const username = `Tube${person.user_id.slice(-8)}`;
    await db.query(
      `insert into login_grants (login_connection_id, user_id, provider_account_id, username, scopes, sealed)
       values ($1, $2, 'x', $3, '{}', '')`,
      [login, person.user_id, username],
    );
    const search = async (query: string, more = '') => {
      const { json } = await home.door.rest('GET', `/v1/users/search?query=${encodeURIComponent(query)}${more}`);
      return json.data as { id: string }[];
    };
    const found = { id: person.user_id, display_name: name, avatar_url: null };
    const shown = { ...found, connections: [{ platform: 'youtube', username, avatar_url: null }] };
    expect(await search(name.toUpperCase().slice(0, -1))).toEqual([shown]);
    expect(await search(username.toLowerCase())).toEqual([shown]);
    expect(await search(`${name}x`)).toEqual([]);
    expect(await search('%%%')).toEqual([]);
    for (let n = 0; n < 3; n += 1) await server.user();
    expect(await search('Person', '&limit=2')).toHaveLength(2);
    const { json } = await home.door.gql(`{ searchUsers(query: "${name}") { id connections { platform username } } }`);
    expect(json.data.searchUsers).toEqual([{ id: person.user_id, connections: [{ platform: 'youtube', username }] }]);

    await server.operator.setMembership(home.account_id, person.user_id, 'viewer');
    expect(await search(name)).toEqual([]);
    const refused = [
      await home.door.rest('GET', '/v1/users/search?query=ab'),
      await home.door.rest('GET', '/v1/users/search?query=abc&limit=11'),
      await guest.door.rest('GET', '/v1/users/search?query=abc'),
    ];
    expect(refused.map(({ status, json }) => [status, json.message])).toEqual([
      [400, 'query must be at least 3 characters'],
      [400, expect.stringContaining('limit:')],
      [403, 'Missing permission: members:create'],
    ]);
  });
});
