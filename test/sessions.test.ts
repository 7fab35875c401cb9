import { actFor } from '../access/act';
import { refreshSession, switchSessions } from '../access/sessions';
import { createTokens, hashJti, type Tokens } from '../access/tokens';
import { asOperator } from '../cli/admin/operator';
import { session, sessionStream, type SessionEvent } from '../domain/sessions';
import { createSecretBox } from '../engines/secrets/box';
import { parseMasterKeys } from '../engines/secrets/master-keys';
import { SettingsSchema } from '../kernel/settings';
import { sessions } from '../projections/sessions';
import { sessionEnds } from '../reactors/sessions';
import { decider } from './support/decider';
import { testDatabase, type TestDatabase } from './support/database';
import { feed, uuid } from './support/identity';
import { engines, type Engines } from './support/projections';
import { sessionHouse, type SessionHouse } from './support/sessions';

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
    const fresh = await switchSessions(acting, services(), { user_id: ada }, home);
    expect(await claimsOf(fresh!, at)).toMatchObject({ account_id: home, session_id: first.session_id, use: 'access' });
    const second = await refresh(first.refresh.token, at);
    expect(await claimsOf(second.access.token, at)).toMatchObject({ account_id: home });

    await switchSessions(acting, services(), { account_id: home }, null);
    const third = await refresh(second.refresh.token, at);
    expect(await claimsOf(third.access.token, at)).toMatchObject({ account_id: null });
    await switchSessions(acting, services(), { session_id: first.session_id }, uuid(77));
    expect(await claimsOf((await refresh(third.refresh.token, at)).access.token, at)).toMatchObject({
      account_id: null,
    });
    const key = { ...acting, caller: { ...caller, kind: 'user_api_key' as const } };
    expect(await switchSessions(key, services(), { user_id: ada }, null)).toBeNull();
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
      act: actFor(asOperator('test'), { ...services(), settle: async () => undefined, commit: commit() }),
      db: t.db,
      keep: (text: string, values: readonly unknown[]) => void kept.push([text, values]),
      enqueue: () => undefined,
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
