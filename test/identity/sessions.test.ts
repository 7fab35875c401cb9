import { actFor } from '../../app/write-path/act';
import { endRemovedLogins, endSessions, revokeExcessSessions } from '../../services/identity/session-revocation';
import { setActiveAccountAndReissueToken } from '../../services/identity/session-account';
import { refreshSession, sessionOf } from '../../services/identity/sessions';
import { createTokens, hashJti, type Tokens } from '../../access/authentication/tokens/jwt';
import { asOperator } from '../../cli/admin/shared/operator';
import { session, sessionStream, type SessionEvent } from '../../domain/identity/sessions';
import type { UserEvent } from '../../domain/identity/users';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { SettingsSchema } from '../../kernel/settings/settings';
import { sessions } from '../../projections/identity/sessions';
import { sessionEnds } from '../../reactors/identity/sessions';
import { decider } from '../support/decider';
import { testDatabase, type TestDatabase } from '../support/database';
import { feed, uuid } from '../support/identity';
import { engines, type Engines } from '../support/projections';
import { Client, refused as refusedUpgrade } from '../support/realtime';
import { sessionHouse, type SessionHouse } from '../support/sessions';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';

const now = '2026-01-02T03:04:05.000Z';
const ends_at = '2026-02-01T03:04:05.000Z';
const [session_id, user_id, account_id] = [uuid(1), uuid(2), uuid(3)];
const ids = { session_id, user_id };
const facts = { ...ids, provider: 'twitch', active_account_id: null, ends_at };
const started: SessionEvent = { type: 'session:started', ...facts, started_at: now };
const ended = (reason: 'logout' | 'reuse'): SessionEvent => ({ type: 'session:ended', ...ids, reason, ended_at: now });
const switched = (to: string | null): SessionEvent => ({
  type: 'session:account_switched',
  ...ids,
  active_account_id: to,
  switched_at: now,
});

describe('a session', () => {
  const given = decider(session);
  test('starts once', () => {
    given([])
      .when({ type: 'session:start', ...facts, now })
      .then(started);
    given([started])
      .when({ type: 'session:start', ...facts, now })
      .thenFails('SESSION_EXISTS');
  });
  test('is adopted where it has no events, with the time that it began', () => {
    const adopt = { type: 'session:adopt', ...facts, started_at: now, now: ends_at } as const;
    given([]).when(adopt).then(started);
    given([started]).when(adopt).thenNothing();
  });
  test('switches its account, and nothing when it is on it', () => {
    const to = { type: 'session:switch_account', active_account_id: account_id, now } as const;
    given([started]).when(to).then(switched(account_id));
    given([started, switched(account_id)])
      .when(to)
      .thenNothing();
    given([started, switched(account_id)])
      .when({ ...to, active_account_id: null })
      .then(switched(null));
  });
  test('ends once, and nothing happens to it then', () => {
    given([started]).when({ type: 'session:end', reason: 'logout', now }).then(ended('logout'));
    given([started])
      .when({ type: 'session:report_reuse', now })
      .then({ type: 'session:reuse_detected', ...ids, detected_at: now }, ended('reuse'));
    for (const history of [[], [started, ended('logout')]]) {
      given(history).when({ type: 'session:end', reason: 'revoked', now }).thenNothing();
      given(history).when({ type: 'session:report_reuse', now }).thenNothing();
      given(history).when({ type: 'session:switch_account', active_account_id: account_id, now }).thenNothing();
    }
  });
});

describe('in the database', () => {
  const settings = SettingsSchema.parse({});
  const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
  const [ada, home] = [uuid(20), uuid(30)];
  let t: TestDatabase;
  let on: Engines;
  let tokens: Tokens;
  let house: SessionHouse;
  beforeAll(async () => {
    t = await testDatabase();
    on = await engines(t.db);
    tokens = await createTokens({ db: t.db, secrets });
    house = sessionHouse({ db: t.db, events: on.events, tokens });
    await t.db.query('insert into users (id, created_at) values ($1, now())', [ada]);
    await t.db.query(
      'insert into account_members (account_id, user_id, id, role_id, joined_at) values ($1, $2, $3, $4, now())',
      [home, ada, uuid(31), uuid(32)],
    );
  });
  afterAll(async () => {
    await on.close();
    await t.drop();
  });
  const services = () => ({ db: t.db, events: on.events, tokens, settings });
  const refresh = (token: string, at: number, seed: string | null = null) =>
    refreshSession({ act: house.act, context: { now: at, idempotency_seed: seed } }, services(), token);
  const claimsOf = async (token: string, at: number) => (await tokens.verify(token, at)).claims;
  const typesOf = async (id: string) => (await on.events.read(sessionStream(id))).map(({ type }) => type);
  const refused = { reason: 'REFUSED_REFRESH_TOKEN' };

  test('the read model shows the same rows when a page comes twice', async () => {
    const other = { ...started, session_id: uuid(4) };
    const page = [started, other, switched(account_id), { ...ended('logout'), session_id: uuid(4) }];
    await feed(t.db, sessions, page, 2);
    expect(await t.db.query('select id, provider, active_account_id from user_sessions')).toEqual([
      { id: session_id, provider: 'twitch', active_account_id: account_id },
    ]);
    expect(await t.db.query('select 1 from revocations where credential_id = $1', [uuid(4)])).not.toEqual([]);
    await t.db.query('delete from user_sessions');
  });

  test('the active account outlives refreshes, and counts while its user belongs to it', async () => {
    const at = Date.now();
    const first = await house.open(ada, null, at);
    expect(await claimsOf(first.access.token, at)).toMatchObject({ account_id: null });
    const caller = { kind: 'jwt', credential_id: first.session_id, user_id: ada } as const;
    const acting = { act: house.act, context: { now: at, idempotency_seed: null }, caller };
    const fresh = await setActiveAccountAndReissueToken(acting, services(), { user_id: ada }, home);
    expect(await claimsOf(fresh!, at)).toMatchObject({ account_id: home, session_id: first.session_id, use: 'access' });
    const second = await refresh(first.refresh.token, at);
    expect(await claimsOf(second.access.token, at)).toMatchObject({ account_id: home });

    await setActiveAccountAndReissueToken(acting, services(), { account_id: home }, null);
    const third = await refresh(second.refresh.token, at);
    expect(await claimsOf(third.access.token, at)).toMatchObject({ account_id: null });
    await setActiveAccountAndReissueToken(acting, services(), { session_id: first.session_id }, uuid(77));
    expect(await claimsOf((await refresh(third.refresh.token, at)).access.token, at)).toMatchObject({
      account_id: null,
    });
    const key = { ...acting, caller: { ...caller, kind: 'user_api_key' as const } };
    expect(await setActiveAccountAndReissueToken(key, services(), { user_id: ada }, null)).toBeNull();
  });

  test('a token that was traded before ends the session, however short the time', async () => {
    const at = Date.now();
    const first = await house.open(ada, null, at);
    const second = await refresh(first.refresh.token, at + 60_000);
    await expect(refresh(first.refresh.token, at + 60_001)).rejects.toMatchObject(refused);
    expect(await typesOf(first.session_id)).toEqual(['session:started', 'session:reuse_detected', 'session:ended']);
    await expect(refresh(second.refresh.token, at + 60_002)).rejects.toMatchObject(refused);
    expect(await t.db.query('select 1 from sessions where id = $1', [first.session_id])).toEqual([]);
    expect(await t.db.query('select 1 from revocations where credential_id = $1', [first.session_id])).not.toEqual([]);
  });

  test('of two calls that came at once one is answered, and the session lives', async () => {
    const at = Date.now();
    const first = await house.open(ada, null, at);
    const second = await refresh(first.refresh.token, at);
    await expect(refresh(first.refresh.token, at)).rejects.toMatchObject(refused);
    expect(await typesOf(first.session_id)).toEqual(['session:started']);
    await refresh(second.refresh.token, Date.now() + 1000);
  });

  test('under its own key a call that was never answered is answered, however late; under another it is reuse', async () => {
    const at = Date.now();
    const first = await house.open(ada, null, at);
    const lost = await refresh(first.refresh.token, at, 'seed');
    const again = await refresh(first.refresh.token, at + 3_600_000, 'seed');
    expect((await claimsOf(again.refresh.token, at))!.jti).toBe((await claimsOf(lost.refresh.token, at))!.jti);
    await expect(refresh(first.refresh.token, at + 3_600_000, 'other')).rejects.toMatchObject(refused);
    expect(await typesOf(first.session_id)).toContain('session:reuse_detected');
  });

  test('a refresh token of a client is none of a session, and one that has ended still says which it was', async () => {
    const at = Date.now();
    const { session_id: own, refresh: current } = await house.open(ada, null, at);
    const client = { client_id: uuid(50), grant_id: uuid(51), scopes: ['events:read'] };
    const of = { sub: ada, account_id: null, session_id: own, use: 'refresh' } as const;
    const foreign = await tokens.sign({ ...of, client }, at, 60_000);
    await expect(refresh(foreign.token, at)).rejects.toMatchObject(refused);
    await expect(sessionOf(services(), foreign.token, at)).rejects.toMatchObject(refused);
    expect(await typesOf(own)).toEqual(['session:started']);
    const late = at + settings.auth.session_lifetime + 1000;
    await expect(refresh(current.token, late)).rejects.toMatchObject(refused);
    expect(await sessionOf(services(), current.token, late)).toBe(own);
  });

  test('one that an event has ended is not refreshed, though its row and its line are not written yet', async () => {
    const { session_id: own, refresh: current } = await house.open(ada, null);
    await house.act(session, sessionStream(own), { type: 'session:end', reason: 'user_deleted' });
    await t.db.query('delete from revocations where credential_id = $1', [own]);
    await expect(refresh(current.token, Date.now())).rejects.toMatchObject(refused);
  });

  test('all sessions of a user end but the one to keep, and two who end them at once end each once', async () => {
    const bob = uuid(21);
    await t.db.query('insert into users (id, created_at) values ($1, now())', [bob]);
    const all = await Promise.all([1, 2, 3].map(() => house.open(bob, null)));
    const [kept, ...others] = all.map((one) => one.session_id) as [string, ...string[]];
    const end = () => endSessions(house.act, services(), { user_id: bob, except: kept }, 'user_deleted');
    await Promise.all([end(), end()]);
    for (const id of others) expect(await typesOf(id)).toEqual(['session:started', 'session:ended']);
    expect(await typesOf(kept)).toEqual(['session:started']);
    expect(await t.db.query('select id from sessions where user_id = $1', [bob])).toEqual([{ id: kept }]);
  });

  test('sessions of a removed login get their ends from the next try, where the first died after they did', async () => {
    const [gil, login_connection_id] = [uuid(24), uuid(60)];
    await t.db.query('insert into users (id, created_at) values ($1, now())', [gil]);
    const opened = [];
    for (let n = 0; n < 5; n += 1) opened.push((await house.open(gil, null)).session_id);
    const [of_login, of_other, beginning, earlier, caller] = opened;
    // Those of an earlier release know no login.
    await t.db.query(
      `update sessions set login_connection_id = case when id = $1 then $2::uuid else $3::uuid end
       where id = any($4::uuid[])`,
      [of_login, login_connection_id, uuid(61), [of_login, of_other]],
    );
    // A login whose session has its event, and not yet its row.
    await t.db.query('delete from sessions where id = $1', [beginning]);
    const removed: UserEvent = {
      type: 'user:login_disconnected',
      ...{ user_id: gil, login_connection_id, provider: 'twitch', identity: 'a'.repeat(64), disconnected_at: now },
      ...{ removed_with: null, session_id: caller! },
    };
    const killed = new Error('killed');
    const dying = async () => {
      throw killed;
    };
    await expect(endRemovedLogins(dying, services(), [removed])).rejects.toBe(killed);
    expect(await typesOf(of_login!)).toEqual(['session:started']);
    await endRemovedLogins(house.act, services(), [removed]);
    for (const id of [of_login, earlier]) expect(await typesOf(id!)).toEqual(['session:started', 'session:ended']);
    for (const id of [of_other, beginning, caller]) expect(await typesOf(id!)).toEqual(['session:started']);
    const listed = await t.db.query('select id from user_sessions where user_id = $1 order by id', [gil]);
    expect(listed.map(({ id }) => id)).toEqual([of_other, beginning, caller].sort());
  });

  test('a user keeps the hundred sessions that were refreshed last', async () => {
    const eve = uuid(22);
    await t.db.query('insert into users (id, created_at) values ($1, now())', [eve]);
    const oldest = await house.open(eve, null, Date.now() - 60_000);
    const newest = await house.open(eve, null);
    await t.db.query(
      `insert into sessions (id, user_id, refresh_jti_hash, created_at, refreshed_at, expires_at)
       select gen_random_uuid(), $1, 'surplus ' || n, now(), now() - interval '1 second', now() + interval '1 day'
       from generate_series(1, $2) n`,
      [eve, 98],
    );
    const living = async () =>
      (await t.db.query('select id from sessions where user_id = $1', [eve])).map(({ id }) => id);
    await revokeExcessSessions(house.act, services(), eve);
    expect(await living()).toHaveLength(100);
    const third = await house.open(eve, null);
    await revokeExcessSessions(house.act, services(), eve);
    expect(await living()).toHaveLength(100);
    expect(await living()).not.toContain(oldest.session_id);
    expect(await living()).toEqual(expect.arrayContaining([newest.session_id, third.session_id]));
    expect(await typesOf(oldest.session_id)).toEqual(['session:started', 'session:ended']);
  });

  test('a surplus session gets its end from the next login, where the first died after it deleted the row', async () => {
    const [hal, ivy] = [uuid(25), uuid(26)];
    for (const user_id of [hal, ivy]) {
      await t.db.query('insert into users (id, created_at) values ($1, now())', [user_id]);
      const oldest = await house.open(user_id, null, Date.now() - 60_000);
      await Promise.all(Array.from({ length: 100 }, () => house.open(user_id, null)));
      const killed = new Error('killed');
      const dying = async () => {
        throw killed;
      };
      await expect(revokeExcessSessions(dying, services(), user_id)).rejects.toBe(killed);
      expect(await typesOf(oldest.session_id)).toEqual(['session:started']);
      if (user_id === ivy) {
        // The revocation is kept for an hour.
        await t.db.query('delete from revocations where credential_id = $1', [oldest.session_id]);
        await t.db.query(`update user_sessions set started_at = now() - interval '25 hours' where id = $1`, [
          oldest.session_id,
        ]);
      }
      // A login whose session has its event, and not yet its row.
      const beginning = await house.open(user_id, null);
      await t.db.query('delete from sessions where id = $1', [beginning.session_id]);
      await revokeExcessSessions(house.act, services(), user_id);
      expect(await typesOf(oldest.session_id)).toEqual(['session:started', 'session:ended']);
      expect(await typesOf(beginning.session_id)).toEqual(['session:started']);
      expect(await t.db.query('select id from sessions where user_id = $1', [user_id])).toHaveLength(100);
    }
  });

  test('of logins at once no more than a hundred live, and each of the others ends once', async () => {
    const fay = uuid(23);
    await t.db.query('insert into users (id, created_at) values ($1, now())', [fay]);
    const opened = await Promise.all(Array.from({ length: 150 }, () => house.open(fay, null)));
    // Each of them has opened its session before the first looks what is too many.
    await Promise.all(Array.from({ length: 5 }, () => revokeExcessSessions(house.act, services(), fay)));
    const living = await t.db.query<{ id: string }>('select id from sessions where user_id = $1', [fay]);
    expect(living).toHaveLength(100);
    const ids = new Set(living.map(({ id }) => id));
    for (const { session_id } of opened) {
      const types = ids.has(session_id) ? ['session:started'] : ['session:started', 'session:ended'];
      expect(await typesOf(session_id)).toEqual(types);
    }
  });

  test('a session of the build before stays valid, on its account, and gets its events with the first refresh', async () => {
    const at = Date.now();
    const id = uuid(40);
    const claims = { sub: ada, account_id: home, session_id: id, use: 'refresh' } as const;
    const old = await tokens.sign(claims, at, 60_000);
    await t.db.query(
      `insert into sessions (id, user_id, refresh_jti_hash, created_at, refreshed_at, expires_at)
       values ($1, $2, $3, now(), now(), now() + interval '1 minute')`,
      [id, ada, hashJti(old.jti)],
    );
    const next = await refresh(old.token, at);
    expect(await claimsOf(next.access.token, at)).toMatchObject({ account_id: home, session_id: id });
    expect(await t.db.query('select active_account_id from user_sessions where id = $1', [id])).toEqual([
      { active_account_id: home },
    ]);
  });

  test('whoever logs in has the sessions ended whose time is over; an ended one leaves no row', async () => {
    const old = await house.open(ada, null, Date.now() - settings.auth.session_lifetime - 1000);
    const kept: [string, readonly unknown[]][] = [];
    const tools = {
      act: actFor(asOperator('test'), { ...services(), awaitShown: async () => undefined, commit: commit() }),
      db: t.db,
      keep: (text: string, values: readonly unknown[]) => void kept.push([text, values]),
      enqueue: () => undefined,
      cancel: () => undefined,
      now: new Date().toISOString(),
    };
    const [stored] = await on.events.read(sessionStream(old.session_id));
    await sessionEnds.react(stored!, tools);
    const [, end] = await on.events.read(sessionStream(old.session_id));
    expect(end!.data).toMatchObject({ reason: 'expired' });
    await sessionEnds.react(end!, tools);
    for (const [text, values] of kept) await t.db.query(text, values);
    expect(await t.db.query('select 1 from sessions where id = $1', [old.session_id])).toEqual([]);
  });
  const commit = () => (_request: unknown, writes: Parameters<typeof on.events.append>[0]) =>
    on.events.append(writes, {});
});

describe('on the server', () => {
  let server: SharedServer;
  let ada: MadeAccount;
  beforeAll(async () => {
    server = await sharedServer();
    ada = await server.account();
  });
  const login = () => server.session(ada.user_id, ada.account_id);
  const refresh = (refresh_token: string, headers: Record<string, string> = {}) =>
    server.door('').rest('POST', '/v1/auth/refresh', { body: { refresh_token }, headers });
  const works = async (token: string) => (await server.door(token).rest('GET', '/v1/users/me/sessions')).status === 200;

  test('a stolen refresh token ends its session and what is open of it, and no other', async () => {
    const [mine, other] = [await login(), await login()];
    const first = await refresh(mine.refresh_token);
    expect(first).toMatchObject({ status: 200, json: { is_new_user: false, has_account: true } });
    const second = await refresh(first.json.refresh_token);
    const socket = await Client.open(server.ws_url, second.json.token);
    const ws = (await server.door(second.json.token).rest('POST', '/v1/auth/ws-token', { body: {} })).json.data
      .ws_token;

    const stolen = await refresh(mine.refresh_token);
    expect(stolen).toMatchObject({
      status: 401,
      json: { error: 'UNAUTHORIZED', message: 'Invalid or expired refresh token' },
    });
    expect([await works(second.json.token), await works(mine.access_token)]).toEqual([false, false]);
    expect((await refresh(second.json.refresh_token)).status).toBe(401);
    expect(await socket.closed()).toBe(4401);
    expect((await refusedUpgrade(`${server.ws_url}?token=${ws}`)).status).toBe(401);
    expect(await works(other.access_token)).toBe(true);
    expect((await refresh(other.refresh_token)).status).toBe(200);
  });

  test('of many refreshes at once exactly one wins', async () => {
    const mine = await login();
    const all = await Promise.all(Array.from({ length: 6 }, () => refresh(mine.refresh_token)));
    const won = all.filter(({ status }) => status === 200);
    expect([won.length, all.filter(({ status }) => status === 401).length]).toEqual([1, 5]);
  });

  test('under one Idempotency-Key a refresh is answered again, and is no reuse', async () => {
    const mine = await login();
    const key = { 'idempotency-key': `refresh ${mine.refresh_token.slice(-20)}` };
    const door = server.door('');
    const once = () =>
      door.rest('POST', '/v1/auth/refresh', { body: { refresh_token: mine.refresh_token }, headers: key });
    const [first, second] = [await once(), await once()];
    expect(second.json).toEqual(first.json);
    const next = await refresh(first.json.refresh_token);
    expect((await once()).json).toEqual(first.json);
    expect((await refresh(next.json.refresh_token)).status).toBe(200);
  });

  test('a lost answer is repeated from another network, and with another access token beside it', async () => {
    const mine = await login();
    const repeated = (token: string) =>
      server.door(token).rest('POST', '/v1/auth/refresh', {
        body: { refresh_token: mine.refresh_token },
        headers: { 'idempotency-key': 'over another network' },
      });
    // Each door has an address of its own.
    const answers = [await repeated(mine.access_token), await repeated(''), await repeated('lm_stale')];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const { json } of answers) expect(json).toEqual(answers[0]!.json);
    expect(await works(answers[0]!.json.token)).toBe(true);
    expect((await refresh(answers[0]!.json.refresh_token)).status).toBe(200);
  });

  test('each token counts for what it was made for, and nowhere else', async () => {
    const { access_token, refresh_token } = await login();
    const ws = (await server.door(access_token).rest('POST', '/v1/auth/ws-token', { body: {} })).json.data.ws_token;
    const asked: Record<string, number> = {};
    for (const [name, token] of Object.entries({ access_token, refresh_token, ws })) {
      const door = server.door(token);
      asked[`${name} on REST`] = (await door.rest('GET', '/v1/users/me/sessions')).status;
      const gql = (await door.gql('{ sessions { total } }')).json;
      asked[`${name} on GraphQL`] = gql.errors?.[0].extensions.code === 'UNAUTHORIZED' ? 401 : 200;
      const query = `/v1/users/me/sessions?token=${token}`;
      asked[`${name} in a query`] = (await server.door('').rest('GET', query)).status;
      asked[`${name} as a refresh token`] = (await refresh(token)).status;
    }
    expect(asked).toEqual({
      'access_token on REST': 200,
      'access_token on GraphQL': 200,
      'access_token in a query': 401,
      'access_token as a refresh token': 401,
      'refresh_token on REST': 401,
      'refresh_token on GraphQL': 401,
      'refresh_token in a query': 401,
      'refresh_token as a refresh token': 200,
      'ws on REST': 401,
      'ws on GraphQL': 401,
      'ws in a query': 401,
      'ws as a refresh token': 401,
    });
    expect((await refusedUpgrade(`${server.ws_url}?token=${refresh_token}`)).status).toBe(401);
  });

  test('a logout ends the session, also asked twice, and by a token that was replaced', async () => {
    const mine = await login();
    const { json } = await refresh(mine.refresh_token);
    const logout = (refresh_token: string) =>
      server.door('').rest('POST', '/v1/auth/logout', { body: { refresh_token } });
    for (const token of [mine.refresh_token, mine.refresh_token, json.refresh_token]) {
      expect(await logout(token)).toMatchObject({ status: 200, json: { success: true } });
    }
    expect(await works(json.token)).toBe(false);
    expect((await logout(json.token)).status).toBe(401);
    expect((await logout('made up')).status).toBe(401);
  });
});
