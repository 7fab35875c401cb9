import { v7 } from 'uuid';
import { SERVICE_CALLER, withoutReadYourWrites } from '../../app/service-calls';
import type { Services } from '../../app/services';
import { prepare } from '../../api/rest/invoke';
import { adminAddAccountMember, adminUpdateAccountMember } from '../../commands/operators/admin-accounts';
import { seededRoles } from '../../domain/accounts/roles';
import { account, type AccountCommand, type AccountEvent, accountStream } from '../../domain/accounts/accounts';
import { ACCOUNT_PERMISSIONS, DEFAULT_ROLES } from '../../domain/common/permissions';
import { userStream } from '../../domain/identity/users';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { accounts } from '../../projections/accounts/accounts';
import { testDatabase } from '../support/database';
import { decider } from '../support/decider';
import type { Door } from '../support/door';
import { feed, uuid } from '../support/identity';
import { inTime } from '../support/patience';
import { Client } from '../support/realtime';
import { sharedServer, type MadeAccount, type MadeMember, type SharedServer } from '../support/shared-server';

const now = '2026-01-02T03:04:05.000Z';
const later = '2026-02-02T03:04:05.000Z';
const [account_id, ada, bob, eve, invite_id] = [uuid(1), uuid(2), uuid(3), uuid(4), uuid(30)];
const role_ids = [uuid(11), uuid(12), uuid(13), uuid(14)] as const;
const [owner_role, administrator, moderator, viewer] = role_ids;
const created: AccountEvent = {
  type: 'account:created',
  ...{ account_id, name: 'Ada', description: null, plan: 'free', owner_id: ada, membership_id: uuid(5) },
  roles: seededRoles(role_ids),
  created_at: now,
};
const joined = (user_id: string, role_id: string): AccountEvent => ({
  type: 'account:member_added',
  ...{ account_id, membership_id: uuid(6), user_id, role_id, added_at: now },
});
const code = { code_hash: 'a'.repeat(64), code_prefix: 'abcd' };
const invited = (more: object = {}): AccountEvent => ({
  type: 'account:invite_created',
  ...{ account_id, invite_id, ...code, role_id: viewer, made_by: ada, made_with: null },
  ...{ max_uses: 1, expires_at: later, created_at: now },
  ...more,
});
const accepted = (user_id: string, uses = 1): AccountEvent => ({
  type: 'account:invite_accepted',
  ...{ account_id, invite_id, user_id, uses, accepted_at: now },
});
const removed = (user_id: string): AccountEvent => ({
  type: 'account:member_removed',
  ...{ account_id, membership_id: uuid(6), user_id, removed_at: now },
});

test('a member who was made or changed is answered as decided, also while the read model is behind', async () => {
  const t = await testDatabase();
  const store = await createPostgresEventStore({ pool: t.db.pool, wakeups: createLocalWakeups() });
  const say = (stream: string, { type, ...data }: { type: string }) =>
    store.append([{ stream, expected: 'any', events: [{ id: v7(), type, data: { ...data } }] }], {});
  await say(accountStream(account_id), created);
  await say(userStream(bob), { type: 'user:registered', ...{ user_id: bob, registered_at: now } });
  const access = { announce: async () => undefined };
  const services = { db: t.db, access, ...withoutReadYourWrites(store, () => ({})) } as unknown as Services;
  const context = { correlation_id: v7(), trace: null, ip: '', now: Date.parse(now), idempotency_seed: null };
  const as = (operation: typeof adminAddAccountMember | typeof adminUpdateAccountMember, role_id: string) =>
    prepare(operation, services).run({ caller: SERVICE_CALLER, input: { account_id, user_id: bob, role_id } }, context);
  const shown = { user_id: bob, display_name: null, is_owner: false, joined_at: now };
  expect(await as(adminAddAccountMember, viewer)).toMatchObject({ ...shown, role: { id: viewer, slug: 'viewer' } });
  expect(await as(adminUpdateAccountMember, moderator)).toMatchObject({ ...shown, role: { slug: 'moderator' } });
  await store.close();
  await t.drop();
});

describe('an invite', () => {
  const given = decider(account);
  const create = (more: object = {}): AccountCommand => ({
    type: 'account:create_invite',
    ...{ invite_id, ...code, role_id: viewer, by: { user_id: ada, permissions: ACCOUNT_PERMISSIONS } },
    ...{ made_with: null, max_uses: 1, expires_at: later, now },
    ...more,
  });
  const accept = (user_id: string, more: object = {}): AccountCommand => ({
    type: 'account:accept_invite',
    ...{ invite_id, user_id, membership_id: uuid(6), now },
    ...more,
  });

  test('is made for a role that its maker may give', () => {
    given([created]).when(create()).then(invited());
    given([created])
      .when(create({ role_id: owner_role }))
      .thenFails('ONE_OWNER');
    given([created])
      .when(create({ role_id: uuid(99) }))
      .thenFails('ROLE_NOT_FOUND');
    const by = { user_id: bob, permissions: ACCOUNT_PERMISSIONS };
    given([created, joined(bob, viewer)])
      .when(create({ by, role_id: moderator }))
      .thenFails('PERMISSION_BEYOND_OWN');
    given([created])
      .when(create({ by: { user_id: ada, permissions: ['members:create'] } }))
      .thenFails('PERMISSION_BEYOND_OWN');
  });
  test('lets one in, once, and nobody who is a member', () => {
    given([created, invited()]).when(accept(bob)).then(accepted(bob), joined(bob, viewer));
    given([created, invited(), accepted(bob), joined(bob, viewer)])
      .when(accept(bob))
      .thenNothing();
    given([created, invited()]).when(accept(ada)).thenNothing();
    given([created, invited(), accepted(bob), joined(bob, viewer)])
      .when(accept(eve))
      .thenFails('INVITE_USED_UP');
  });
  test('ends with its time, its deletion, and its role', () => {
    given([created, invited()])
      .when(accept(bob, { now: later }))
      .thenFails('INVITE_EXPIRED');
    given([created]).when(accept(bob)).thenFails('INVITE_NOT_FOUND');
    const deleted: AccountEvent = { type: 'account:invite_deleted', account_id, invite_id, deleted_at: now };
    given([created, invited()]).when({ type: 'account:delete_invite', invite_id, now }).then(deleted);
    given([created, invited(), deleted]).when(accept(bob)).thenFails('INVITE_NOT_FOUND');
    given([created, invited(), deleted])
      .when({ type: 'account:delete_invite', invite_id, now })
      .thenFails('INVITE_NOT_FOUND');
  });
  test('is no way back for one who was sent away', () =>
    given([created, invited({ max_uses: 5 }), accepted(bob), joined(bob, viewer), removed(bob)])
      .when(accept(bob))
      .thenFails('INVITE_USED_UP'));
  test('gives no more than its maker may give by now', () => {
    const by_bob = [created, joined(bob, administrator), invited({ made_by: bob, role_id: moderator })];
    const demoted: AccountEvent = {
      type: 'account:member_role_changed',
      ...{ account_id, user_id: bob, role_id: viewer, changed_at: now },
    };
    given(by_bob).when(accept(eve)).then(accepted(eve), joined(eve, moderator));
    given([...by_bob, demoted])
      .when(accept(eve))
      .thenFails('INVITE_WITHDRAWN');
    const kept = (permissions: string[]): AccountEvent => ({
      type: 'account:role_changed',
      ...{ account_id, role_id: administrator, name: 'Administrator', description: null, color: '#000000' },
      ...{ permissions, changed_at: now },
    });
    const moderates = DEFAULT_ROLES[2]!.permissions;
    given([...by_bob, kept([...moderates, 'members:create'])])
      .when(accept(eve))
      .then(accepted(eve), joined(eve, moderator));
    given([...by_bob, kept([...moderates])])
      .when(accept(eve))
      .thenFails('INVITE_WITHDRAWN');
    const grown: AccountEvent = {
      type: 'account:role_changed',
      ...{ account_id, role_id: moderator, name: 'Moderator', description: null, color: '#000000' },
      ...{ permissions: ['account:delete'], changed_at: now },
    };
    given([...by_bob, grown])
      .when(accept(eve))
      .thenFails('INVITE_WITHDRAWN');
    given([created, invited({ made_by: null, role_id: moderator }), grown])
      .when(accept(eve))
      .thenFails('INVITE_WITHDRAWN');
    given([created, invited({ role_id: moderator }), grown])
      .when(accept(eve))
      .then(accepted(eve), joined(eve, moderator));
  });
  test('goes with its maker, and so do the logins that they acted with', () =>
    given([
      created,
      joined(bob, administrator),
      invited({ made_by: bob }),
      {
        type: 'account:login_assigned',
        ...{ account_id, assignment_id: uuid(40), user_id: bob, login_connection_id: uuid(41), provider: 'twitch' },
        assigned_at: now,
      },
    ])
      .when({ type: 'account:remove_member', user_id: bob, now })
      .then(
        { type: 'account:login_unassigned', account_id, user_id: bob, provider: 'twitch', unassigned_at: now },
        { type: 'account:invite_deleted', account_id, invite_id, deleted_at: now },
        removed(bob),
      ));
  test('goes with the service key that made it', () => {
    const made_with = uuid(50);
    const [of_key, other] = [invited({ made_by: null, made_with }), invited({ invite_id: uuid(31) })];
    given([created])
      .when(create({ made_with, by: { user_id: null, permissions: ACCOUNT_PERMISSIONS } }))
      .then(of_key);
    const ending = { type: 'account:delete_invites_of_key', key_id: made_with, now } as const;
    given([created, of_key, other])
      .when(ending)
      .then({ type: 'account:invite_deleted', account_id, invite_id, deleted_at: now });
    given([created, other]).when(ending).thenNothing();
  });
  test('takes the place of one that nobody can use any more, when there are many', () => {
    const many = Array.from({ length: 200 }, (_, n) => invited({ invite_id: uuid(1000 + n) }));
    given([created, ...many])
      .when(create())
      .thenFails('TOO_MANY_INVITES');
    const old = invited({ invite_id: uuid(1000), expires_at: now });
    given([created, old, ...many.slice(1)])
      .when(create())
      .then({ type: 'account:invite_deleted', account_id, invite_id: uuid(1000), deleted_at: now }, invited());
  });
});

test('the read model shows the same rows when a page comes twice', async () => {
  const t = await testDatabase();
  const page: AccountEvent[] = [
    created,
    invited({ max_uses: 5 }),
    accepted(bob),
    joined(bob, viewer),
    accepted(eve, 2),
    joined(eve, viewer),
    removed(bob),
    invited({ invite_id: uuid(31), code_hash: 'b' }),
    { type: 'account:invite_deleted', account_id, invite_id: uuid(31), deleted_at: now },
  ];
  await feed(t.db, accounts, page, 2);
  expect(await t.db.query('select id, code_hash, uses, max_uses, made_by from account_invites')).toEqual([
    { id: invite_id, code_hash: code.code_hash, uses: 2, max_uses: 5, made_by: ada },
  ]);
  expect(await t.db.query('select user_id from account_members order by user_id')).toEqual([
    { user_id: ada },
    { user_id: eve },
  ]);
  await t.drop();
});

describe('on the server', () => {
  let server: SharedServer;
  let home: MadeAccount & { door: Door };
  let roles: Record<string, string>;
  const path = (rest: string) => `/v1/accounts/${home.account_id}${rest}`;
  beforeAll(async () => {
    server = await sharedServer();
    home = await server.account();
    const { json } = await home.door.rest('GET', '/v1/roles');
    roles = Object.fromEntries(json.data.map(({ slug, id }: { slug: string; id: string }) => [slug, id]));
  });
  /** Somebody with a session, who belongs to an account of their own. */
  const somebody = (): Promise<MadeMember & { door: Door }> => server.account();
  const invite = async (body: object = {}) => {
    const { json } = await home.door.rest('POST', path('/invites'), { body: { role_id: roles.viewer, ...body } });
    return json.data as { id: string; code: string; expires_at: string };
  };
  const accept = (door: Door, code: string) => door.rest('POST', `/v1/invites/${code}/accept`);

  test('an invite is made, looked at by anybody, accepted once, and its guest is listed', async () => {
    const before = Date.now();
    const made = await home.door.rest('POST', path('/invites'), { body: { role_id: roles.moderator } });
    expect(made.status).toBe(201);
    const { id, code, ...rest } = made.json.data;
    expect(code).toMatch(/^[\w-]{22}$/);
    expect(rest).toMatchObject({
      ...{ account_id: home.account_id, code_prefix: code.slice(0, 4), max_uses: 1, uses: 0, is_expired: false },
      role: { id: roles.moderator, name: 'Moderator', color: '#22c55e' },
      created_by: home.user_id,
    });
    expect(Date.parse(rest.expires_at) - before).toBeGreaterThanOrEqual(7 * 86_400_000);

    const looked = await server.door('').rest('GET', `/v1/invites/${code}`);
    expect(looked.json.data).toEqual({
      account_name: home.name,
      role: { name: 'Moderator', description: 'Moderates chat and runs the stream', color: '#22c55e' },
      expires_at: rest.expires_at,
      is_expired: false,
      is_used_up: false,
    });
    const guest = await somebody();
    const twin = 'mutation($code: String!) { acceptInvite(code: $code) { success accountId roleId } }';
    const first = await guest.door.gql(twin, { variables: { code } });
    expect(first.json.data.acceptInvite).toEqual({
      success: true,
      accountId: home.account_id,
      roleId: roles.moderator,
    });
    expect(await accept(guest.door, code)).toMatchObject({ status: 200, json: { success: true } });
    expect(await accept((await somebody()).door, code)).toMatchObject({
      status: 409,
      json: { error: 'CONFLICT', message: 'This invite has been used up' },
    });
    expect(
      (await server.door('').gql(`{ inviteByCode(code: "${code}") { isUsedUp } }`)).json.data.inviteByCode,
    ).toEqual({
      isUsedUp: true,
    });

    const listed = (await home.door.rest('GET', path('/invites'))).json;
    expect(listed.data.find((one: { id: string }) => one.id === id)).toMatchObject({ uses: 1, is_used_up: true });
    expect(JSON.stringify(listed)).not.toContain(code);
    const members = (await home.door.rest('GET', path('/members'))).json;
    expect(members._meta).toMatchObject({ total: 2, page: 1, limit: 25, pages: 1 });
    expect(members.data).toMatchObject([
      { user_id: home.user_id, display_name: home.display_name, is_owner: true, role: { slug: 'owner' } },
      { user_id: guest.user_id, is_owner: false, role: { slug: 'moderator', color: '#22c55e' } },
    ]);
    const { json } = await home.door.gql(
      `{ members(id: "${home.account_id}", limit: 1) { total items { userId isOwner joinedAt role { name } } } }`,
    );
    expect(json.data.members).toMatchObject({ total: 2, items: [{ userId: home.user_id, isOwner: true }] });
    expect((await home.door.rest('DELETE', path(`/invites/${id}`))).status).toBe(204);
    expect((await server.door('').rest('GET', `/v1/invites/${code}`)).status).toBe(404);
  });

  test('two who accept at once are not both let in', async () => {
    const { code } = await invite({ max_uses: 2 });
    const guests = await Promise.all([1, 2, 3, 4, 5].map(somebody));
    const answers = await Promise.all(guests.map(({ door }) => accept(door, code)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409, 409]);
  });

  test.each([
    [{ duration_secs: 60 }, 'duration_secs must be one of 3600, 86400, 604800, 2592000'],
    [{ max_uses: 0 }, 'max_uses: Too small: expected number to be >=1'],
    [{ code: 'mine' }, 'code: is not a member of this request'],
    [{ made_by: 'me' }, 'made_by: is not a member of this request'],
  ])('%j is refused', async (wrong, message) => {
    const answer = await home.door.rest('POST', path('/invites'), { body: { role_id: roles.viewer, ...wrong } });
    expect(answer).toMatchObject({ status: 400, json: { error: 'VALIDATION_ERROR', message } });
  });

  test('an invite may last for ever, but not for the Owner role', async () => {
    expect((await invite({ duration_secs: null })).expires_at).toBeNull();
    const body = { role_id: roles.owner };
    expect(await home.door.rest('POST', path('/invites'), { body })).toMatchObject({
      status: 403,
      json: { message: 'The Owner role cannot be assigned' },
    });
  });

  test('codes are not guessed', async () => {
    const door = server.door('');
    const guesses = await Promise.all(Array.from({ length: 31 }, (_, n) => door.rest('GET', `/v1/invites/guess-${n}`)));
    expect(guesses.map(({ status }) => status).sort()).toEqual([...Array.from({ length: 30 }, () => 404), 429]);
    expect((await accept(door, 'guess')).status).toBe(401);
  });

  test('an invite whose maker was demoted lets nobody in', async () => {
    const maker = await server.member(home.account_id, 'administrator');
    const body = { role_id: roles.administrator };
    const { json } = await maker.door.rest('POST', path('/invites'), { body });
    await home.door.rest('PATCH', path(`/members/${maker.user_id}`), { body: { role_id: roles.viewer } });
    expect(await accept((await somebody()).door, json.data.code)).toMatchObject({
      status: 409,
      json: { error: 'CONFLICT', message: 'This invite is no longer valid' },
    });
  });

  test('who is removed is refused at once, with their keys, sockets and invites', async () => {
    const member = await server.member(home.account_id, 'administrator');
    const key = { label: 'Bot', permissions: ['events:read'] };
    const { json } = await member.door.rest('POST', '/v1/api-keys', { body: key });
    const bot = server.door(json.data.key);
    const headers = { authorization: `Bearer ${json.data.key}` };
    const of_bot = await Client.open(server.ws_url, null, { headers });
    const invite = { body: { role_id: roles.viewer } };
    const { code } = (await member.door.rest('POST', path('/invites'), invite)).json.data;
    // In the owner's name, but the member's work.
    const viewer = DEFAULT_ROLES.find(({ slug }) => slug === 'viewer')!;
    const page = { user_id: home.user_id, permissions: [...viewer.permissions, 'members:create'] };
    const { token } = (await member.door.rest('POST', '/v1/tokens', { body: page })).json.data;
    const through = (await server.door(token).rest('POST', path('/invites'), invite)).json.data.code;
    const socket = await Client.open(server.ws_url, member.access_token);
    for (const channel of [`events:${home.account_id}`, `user:${member.user_id}`])
      expect(await socket.subscribe(channel)).toMatchObject({ type: 'subscribed' });
    expect((await bot.rest('GET', '/v1/events')).status).toBe(200);

    const place = path(`/members/${member.user_id}`);
    expect((await home.door.rest('DELETE', place)).status).toBe(204);
    expect((await bot.rest('GET', '/v1/events')).status).toBe(401);
    expect((await member.door.rest('GET', '/v1/events')).status).toBe(403);
    expect((await member.door.rest('GET', path('/members'))).status).toBe(403);
    // The session stays without the account; the key has ended.
    const lost = await inTime(
      socket.next(({ type }) => type === 'error', 'the end of the channel'),
      server,
    );
    expect(lost).toMatchObject({ code: 'UNAUTHORIZED', channel: `events:${home.account_id}` });
    expect(await of_bot.closed()).toBe(4401);
    expect(of_bot.close_reason).toBe('TOKEN_REVOKED');
    await socket.ask({ type: 'ping' }, 'pong');
    expect(socket.messages.filter(({ type }) => type === 'error')).toHaveLength(1);
    expect(await socket.subscribe(`events:${home.account_id}`)).toMatchObject({ code: 'UNAUTHORIZED' });
    socket.end();
    for (const left of [code, through]) expect((await accept((await somebody()).door, left)).status).toBe(404);
    expect(await home.door.rest('DELETE', place)).toMatchObject({ status: 404, json: { message: 'Member not found' } });
  });

  test('the owner stays, with their role', async () => {
    const own = path(`/members/${home.user_id}`);
    expect(await home.door.rest('DELETE', own)).toMatchObject({
      status: 409,
      json: { message: 'The owner cannot be removed' },
    });
    expect(await home.door.rest('PATCH', own, { body: { role_id: roles.viewer } })).toMatchObject({
      status: 409,
      json: { message: "The owner's role cannot be changed" },
    });
    expect((await home.door.rest('POST', path('/leave'))).json).toEqual({
      error: 'CONFLICT',
      message: 'The owner cannot leave the account; dissolve it instead',
    });
  });

  test('a path names a member by the membership as well', async () => {
    const member = await server.member(home.account_id, 'viewer');
    const found = async () => {
      const { json } = await home.door.rest('GET', path('/members?limit=100'));
      return (json.data as { id: string; user_id: string }[]).find(({ user_id }) => user_id === member.user_id);
    };
    const place = path(`/members/${(await found())!.id}`);
    const changed = await home.door.rest('PATCH', place, { body: { role_id: roles.moderator } });
    expect(changed).toMatchObject({
      status: 200,
      json: { data: { user_id: member.user_id, role: { slug: 'moderator' } } },
    });
    expect((await home.door.rest('DELETE', place)).status).toBe(204);
    expect((await member.door.rest('GET', path('/members'))).status).toBe(403);
    expect(await found()).toBeUndefined();
  });

  test('a member leaves', async () => {
    const member = await server.member(home.account_id, 'viewer');
    expect(await member.door.rest('POST', path('/leave'))).toMatchObject({ status: 200, json: { success: true } });
    expect(await member.door.rest('POST', path('/leave'))).toMatchObject({
      status: 403,
      json: { message: 'This action requires membership of the account' },
    });
  });

  test('a viewer changes nothing', async () => {
    const member = await server.member(home.account_id, 'viewer');
    const own = path(`/members/${member.user_id}`);
    const tries = [
      await member.door.rest('GET', path('/members')),
      await member.door.rest('PATCH', own, { body: { role_id: roles.administrator } }),
      await member.door.rest('DELETE', path(`/members/${home.user_id}`)),
      await member.door.rest('POST', path('/invites'), { body: { role_id: roles.viewer } }),
      await member.door.rest('POST', '/v1/roles', { body: { name: 'X', permissions: [] } }),
    ];
    expect(tries.map(({ status, json }) => [status, json.message])).toEqual([
      [403, 'Missing permission: members:read'],
      [403, 'Missing permission: members:edit'],
      [403, 'Missing permission: members:delete'],
      [403, 'Missing permission: members:create'],
      [403, 'Missing permission: roles:edit'],
    ]);
  });
});
