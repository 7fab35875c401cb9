import { randomUUID } from 'node:crypto';
import { createConnectionLookup, announceChannel } from '../../services/connections/connection-lookup';
import { type RateLimiter, createRateLimiter } from '../../access/limits/rate-limiter';
import { createFeatureFlags } from '../../access/authorization/features';
import { tokenKind } from '../../access/authentication/contexts';
import { generateKey, hashToken } from '../../access/authentication/keys';
import { createMemberPermissions } from '../../access/authorization/memberships';
import { failureBucket, networkOf, upgradeBucket } from '../../access/limits/rate-buckets';
import {
  anonymous,
  createCallerResolver,
  type CallerResolver,
  type Credentials,
  type Resolution,
} from '../../access/authentication/resolve';
import { createRevocationTail, type Revocation } from '../../access/authentication/revocations';
import { createTokens, type Tokens } from '../../access/authentication/tokens/jwt';
import { SettingsSchema } from '../../kernel/settings/settings';
import { seededRoles } from '../../domain/accounts/roles';
import { mintWsToken } from '../../access/authentication/tokens/session-tokens';
import { endSession } from '../../services/identity/session-revocation';
import { refreshSession } from '../../services/identity/sessions';
import { replaceSigningKeys } from '../../access/authentication/tokens/signing-keys';
import { ACCOUNT_PERMISSIONS } from '../../domain/common/permissions';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import { createLocalRelay } from '../../engines/relay/local';
import { accounts } from '../../projections/accounts/accounts';
import { apiKeys } from '../../projections/credentials/api-keys';
import { connections } from '../../projections/connections/connections';
import { systemKeys } from '../../projections/credentials/system-keys';
import { users } from '../../projections/identity/users';
import {
  account_id,
  ada,
  at,
  bob,
  credentialHouse,
  type CredentialHouse,
  role_ids,
  secrets,
  unlimited,
} from '../support/credentials';
import { testDatabase, type TestDatabase } from '../support/database';
import { feed, uuid } from '../support/identity';
import { silentLog } from '../support/log';
import { PATIENCE_MS, promised } from '../support/patience';
import type { Engines } from '../support/projections';
import type { SessionHouse } from '../support/sessions';

const settings = SettingsSchema.parse({});
const fixed = generateKey('system_key');

let world: CredentialHouse;
let t: TestDatabase;
let on: Engines;
let tokens: Tokens;
let house: SessionHouse;
let resolver: CallerResolver;
const services = () => ({ db: t.db, tokens, settings, events: on.events });
const forgetting = () => ({
  ...services(),
  access: { announce: async (what: Partial<Revocation>) => resolver.forget(what) },
});

beforeAll(async () => {
  world = await credentialHouse();
  ({ t, on, tokens, sessions: house } = world);
  resolver = world.resolver(t.db, [`${fixed.hash}=events:*+chat:read`]);
});
afterAll(async () => {
  await resolver.close();
  await world.close();
});

const ask = (given: Partial<Credentials>) =>
  resolver.resolve({
    authorization: undefined,
    query_token: undefined,
    on_upgrade: false,
    account_header: undefined,
    ip: '203.0.113.9',
    now: Date.now(),
    ...given,
  });
const bearer = (token: string, given: Partial<Credentials> = {}) => ask({ authorization: `Bearer ${token}`, ...given });

const makeKey: CredentialHouse['makeKey'] = (...given) => world.makeKey(...given);

const refreshAt = (token: string, now: number) =>
  refreshSession({ act: house.act, context: { now, idempotency_seed: null } }, services(), token);

describe('tokens by their shape', () => {
  test.each([
    ['system_key', 71],
    ['user_api_key', 71],
    ['service_key', 71],
    ['popout', 71],
    ['overlay', 75],
    ['shared_overlay', 73],
    ['extension', 71],
    ['widget', 74],
  ] as const)('%s is %i characters long', (kind, length) => {
    const { key, hash, prefix } = generateKey(kind);
    expect(key).toHaveLength(length);
    expect(tokenKind(key)).toBe(kind);
    expect(hash).toBe(hashToken(key));
    expect(prefix).toBe(key.slice(0, length - 62));
  });

  test.each(['', 'lm_', 'lm_abc', 'eyJhbGciOiJub25lIn0', 'LM_usr_00'])('%j is nobody’s', (token) =>
    expect(tokenKind(token)).toBeNull(),
  );
});

describe('anonymous', () => {
  test('without a credential, by network', async () => {
    const { caller, failure } = await ask({});
    expect(failure).toBeNull();
    expect(caller).toMatchObject({
      kind: 'anonymous',
      account_id: null,
      rate_limit: 120,
      rate_bucket: 'ip:203.0.113.9',
    });
  });

  test.each([
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
  ])('%s is counted as %s', (ip, network) => expect(networkOf(ip)).toBe(network));

  test.each([
    'Bearer nonsense',
    'Basic YTpi',
    'Bearer',
    `Bearer lm_usr_${'0'.repeat(64)}`,
    `Bearer lm_usr_${'z'.repeat(64)}`,
    'Bearer lm_eyJ.x.y',
  ])('with %j, which does not count', async (authorization) =>
    expect(await ask({ authorization })).toMatchObject({ caller: { kind: 'anonymous' }, failure: 'UNAUTHORIZED' }),
  );
});

describe('sessions', () => {
  test('carry the three permission sets of the active account', async () => {
    const { access, session_id } = await house.open(ada, account_id);
    const { caller } = await bearer(access.token);
    expect(caller).toMatchObject({
      kind: 'jwt',
      user_id: ada,
      account_id,
      credential_id: session_id,
      rate_bucket: `user:${ada}`,
      rate_limit: 600,
    });
    expect([caller.permissions.size, caller.admin_permissions.size, caller.user_permissions.size]).toEqual([
      123, 90, 10,
    ]);
    const viewer = await bearer((await house.open(bob, account_id)).access.token);
    expect([viewer.caller.permissions.size, viewer.caller.admin_permissions.size]).toEqual([9, 0]);
  });

  test('read an account that the user does not belong to as none', async () => {
    const { access } = await house.open(ada, uuid(77));
    expect((await bearer(access.token)).caller).toMatchObject({
      kind: 'jwt',
      account_id: null,
      permissions: new Set(),
    });
  });

  test('expire', async () => {
    const { access } = await house.open(ada, account_id);
    expect((await bearer(access.token)).failure).toBeNull();
    const later = await bearer(access.token, { now: access.expires_at });
    expect(later).toMatchObject({ caller: { kind: 'anonymous' }, failure: 'TOKEN_EXPIRED' });
    const stale = await house.open(ada, account_id, Date.now() - 3_600_000);
    expect((await bearer(stale.access.token)).failure).toBe('TOKEN_EXPIRED');
  });

  test('are cut on this node at the next request after they ended', async () => {
    const { access, refresh, session_id } = await house.open(ada, account_id);
    const { caller } = await bearer(access.token);
    expect(await resolver.revalidate(caller, Date.now())).toEqual({ caller, failure: null });
    await endSession(house.act, forgetting(), session_id, 'logout');
    expect((await bearer(access.token)).failure).toBe('UNAUTHORIZED');
    expect(await resolver.revalidate(caller, Date.now())).toEqual({ caller: null, failure: 'UNAUTHORIZED' });
    await expect(refreshAt(refresh.token, Date.now())).rejects.toMatchObject({
      reason: 'REFUSED_REFRESH_TOKEN',
    });
  });

  test('are refused when the key that signed them is replaced, though they were right before', async () => {
    const { access } = await house.open(ada, account_id);
    expect((await bearer(access.token)).failure).toBeNull();
    await replaceSigningKeys({ db: t.db, secrets });
    const [{ credential_id, user_id, account_id: of_account }] = (await t.db.query(
      'select credential_id, user_id, account_id from revocations order by id desc limit 1',
    )) as [Revocation];
    resolver.forget({ credential_id, user_id, account_id: of_account });
    expect((await bearer(access.token)).failure).toBe('UNAUTHORIZED');
    expect((await bearer((await house.open(ada, account_id)).access.token)).failure).toBeNull();
  });

  test('refuse a token with another signature, algorithm or use', async () => {
    const { access, refresh } = await house.open(ada, account_id);
    const [header, payload, signature] = access.token.slice(3).split('.') as [string, string, string];
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    const other = await createTokens({ db: (await elsewhere()).db, secrets });
    const foreign = await other.sign({ sub: ada, account_id, session_id: uuid(9), use: 'access' }, Date.now(), 60_000);
    for (const token of [
      `lm_${header}.${payload}.${signature.slice(0, -4)}AAAA`,
      `lm_${none}.${payload}.`,
      `lm_${header}.${Buffer.from('{}').toString('base64url')}.${signature}`,
      foreign.token,
      refresh.token,
    ]) {
      expect((await bearer(token, { on_upgrade: true })).failure).toBe('UNAUTHORIZED');
    }
  });

  test('rotate: of two refreshes with one token exactly one succeeds, and the end stays', async () => {
    const began = Date.now();
    const first = await house.open(ada, account_id, began);
    const both = await Promise.allSettled([1, 2].map(() => refreshAt(first.refresh.token, began + 60_000)));
    const won = both.filter((one) => one.status === 'fulfilled');
    expect(won).toHaveLength(1);
    const { session_id, refresh } = won[0]!.value;
    expect([session_id, refresh.expires_at]).toEqual([first.session_id, first.refresh.expires_at]);
    await expect(refreshAt(first.access.token, began)).rejects.toMatchObject({
      reason: 'REFUSED_REFRESH_TOKEN',
    });
  });
});

describe('ws tokens', () => {
  test('open sockets alone, and end with the session that minted them', async () => {
    const { access, session_id } = await house.open(ada, account_id);
    const ws = await mintWsToken(services(), { ...(await bearer(access.token)).caller, user_id: ada }, Date.now());
    expect((await bearer(ws.token)).failure).toBe('UNAUTHORIZED');
    expect((await ask({ query_token: ws.token })).caller.kind).toBe('anonymous');
    expect((await ask({ query_token: ws.token, on_upgrade: true })).caller).toMatchObject({
      kind: 'jwt',
      credential_id: session_id,
      account_id,
    });
    await endSession(house.act, forgetting(), session_id, 'logout');
    expect((await ask({ query_token: ws.token, on_upgrade: true })).failure).toBe('UNAUTHORIZED');
  });

  test('of an API key hold what the key holds', async () => {
    const { key, key_id } = await makeKey(ada, ['events:read']);
    const ws = await mintWsToken(services(), { ...(await bearer(key)).caller, user_id: ada }, Date.now());
    const { caller } = await ask({ query_token: ws.token, on_upgrade: true });
    expect(caller).toMatchObject({
      kind: 'user_api_key',
      credential_id: key_id,
      permissions: new Set(['events:read']),
      expires_at: ws.expires_at,
    });
  });
});

describe('API keys', () => {
  test('hold their own list, by header only', async () => {
    const { key, key_id } = await makeKey(bob, ['chat:read', 'events:read']);
    expect((await bearer(key)).caller).toMatchObject({
      kind: 'user_api_key',
      user_id: bob,
      account_id,
      credential_id: key_id,
      permissions: new Set(['chat:read', 'events:read']),
      rate_bucket: `key:${key_id}`,
      rate_limit: 1200,
    });
    expect(await ask({ query_token: key, on_upgrade: true })).toMatchObject({
      caller: { kind: 'anonymous' },
      failure: 'UNAUTHORIZED',
    });
  });

  test('say when they have expired', async () => {
    const { key } = await makeKey(bob, ['chat:read'], '2026-01-03T00:00:00Z');
    expect((await bearer(key)).failure).toBe('TOKEN_EXPIRED');
  });

  test('are dead once revoked, also while their read model lags', async () => {
    const { key, key_id } = await makeKey(bob, ['chat:read']);
    expect((await bearer(key)).failure).toBeNull();
    await t.db.query('insert into revocations (credential_id) values ($1)', [key_id]);
    resolver.forget({ credential_id: key_id });
    expect((await bearer(key)).failure).toBe('UNAUTHORIZED');
  });

  test('stay dead as long as their read model has them: the event that removes them may be parked', async () => {
    const { key, key_id } = await makeKey(bob, ['chat:read']);
    const old = "clock_timestamp() - interval '2 hours'";
    await t.db.query(
      `insert into revocations (credential_id, user_id, recorded_at)
       values ($1, null, ${old}), ('session', null, ${old}), (null, $2, ${old})`,
      [key_id, bob],
    );
    const left = async () =>
      (await t.db.query(`select credential_id from revocations where recorded_at < now() - interval '1 hour'`)).map(
        (row) => row.credential_id,
      );
    const swept = async () => {
      // A tail sweeps when it starts.
      const tail = createRevocationTail({ db: t.db, log: silentLog });
      await until(() => tail.age_ms() < 1000);
      await tail.stop();
      return left();
    };
    expect(await swept()).toEqual([key_id]);
    expect((await bearer(key)).failure).toBe('UNAUTHORIZED');
    await feed(t.db, apiKeys, [{ type: 'api_key:revoked', key_id, account_id, revoked_at: at }]);
    expect(await swept()).toEqual([]);
  });

  test('delete WebSocket tokens by an index over what minted them', async () => {
    const plan = await t.db.transaction(async (tx) => {
      await tx.query('set local enable_seqscan = off');
      return tx.query(`explain delete from ws_tokens where parent_id in (select id::text from sessions)`);
    });
    expect(JSON.stringify(plan)).toContain('ws_tokens_parent_idx');
  });

  test('are passed on while the sweep of expired rows takes long', async () => {
    const sweeps: string[] = [];
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const query = async (text: string, ...rest: [unknown[]?, string?]) => {
      if (text.startsWith('delete from')) {
        sweeps.push(text);
        await held;
      }
      return t.db.query(text, ...rest);
    };
    const tail = createRevocationTail({ db: { ...t.db, query } as typeof t.db, log: silentLog });
    const told: Revocation[] = [];
    tail.on((revocation) => told.push(revocation));
    await until(() => tail.age_ms() < 1000 && sweeps.length > 0);
    await t.db.query(`insert into revocations (credential_id) values ('while it sweeps')`);
    await until(() => told.some(({ credential_id }) => credential_id === 'while it sweeps'));
    expect(sweeps).toHaveLength(1);
    release();
    await tail.stop();
    expect(sweeps.length).toBeGreaterThan(3);
  });

  test('a header with a known prefix is final, one without is not', async () => {
    const { access } = await house.open(ada, account_id);
    const query = { query_token: access.token, on_upgrade: true };
    expect((await bearer(`lm_usr_${'0'.repeat(64)}`, query)).failure).toBe('UNAUTHORIZED');
    expect((await bearer('something', query)).caller.kind).toBe('jwt');
    expect((await ask({ query_token: access.token })).caller.kind).toBe('anonymous');
  });

  test('end with the membership of their owner, elsewhere within a second', async () => {
    const carol = uuid(6);
    await feed(t.db, users, [{ type: 'user:registered', user_id: carol, registered_at: at }]);
    await feed(t.db, accounts, [
      {
        type: 'account:member_added',
        account_id,
        membership_id: uuid(8),
        user_id: carol,
        role_id: role_ids[3],
        added_at: at,
      },
    ]);
    const { key, key_id } = await makeKey(carol, ['events:read']);
    const removed = {
      type: 'account:member_removed',
      account_id,
      membership_id: uuid(8),
      user_id: carol,
      removed_at: at,
    };
    const tail = createRevocationTail({ db: t.db, log: silentLog });
    const told: Revocation[] = [];
    tail.on((revocation) => told.push(revocation));
    const { caller } = await bearer(key);
    expect(caller.kind).toBe('user_api_key');
    await until(() => tail.age_ms() < 1000);
    await feed(t.db, accounts, [removed]);
    await promised(async () => (await bearer(key)).failure ?? undefined, 'the end of the key', 1_000);
    expect((await resolver.revalidate(caller, Date.now())).caller).toBeNull();
    await until(() => told.some((one) => one.user_id === carol));
    await tail.stop();
    await feed(t.db, apiKeys, [removed]);
    expect(await t.db.query('select 1 from api_keys where id = $1', [key_id])).toEqual([]);
  });

  test('remember when they were last used', async () => {
    const all = await world.oneOfEach();
    const own = createCallerResolver({ db: t.db, tokens, log: silentLog, counts: unlimited, system_keys: [] });
    const now = Date.parse('2026-05-06T07:08:09Z');
    for (const { token } of all) {
      const authorization = `Bearer ${token}`;
      const presented = { query_token: undefined, on_upgrade: false, account_header: undefined };
      expect((await own.resolve({ authorization, ...presented, ip: '::1', now })).failure).toBeNull();
    }
    const used = async () =>
      (
        await t.db.query(
          'select credential_id as id, last_used_at from credential_uses where credential_id = any($1)',
          [all.map(({ id }) => id)],
        )
      ).sort((a, b) => (a.id < b.id ? -1 : 1));
    // Not with the request, but soon, and for the kinds whose lists show it.
    expect(await used()).toEqual([]);
    await own.close();
    const shown = all.filter(({ kind }) => kind.endsWith('_key')).map(({ id }) => id);
    expect(await used()).toEqual(shown.sort().map((id) => ({ id, last_used_at: '2026-05-06T07:08:09.000Z' })));
  });

  test('and upgrades are counted by credential, not by person', async () => {
    const [one, two] = await Promise.all([makeKey(bob, ['chat:read']), makeKey(bob, ['chat:read'])]);
    const callers = await Promise.all([one, two, one].map(async ({ key }) => (await bearer(key)).caller));
    const [first, second, again] = callers.map((caller) => upgradeBucket(caller).rate_bucket);
    expect([first === second, first === again]).toEqual([false, true]);
  });
});

describe('system keys', () => {
  test('of the configuration and of the database, on the account that the request names', async () => {
    const { key, hash, prefix } = generateKey('system_key');
    const key_id = randomUUID();
    await feed(t.db, systemKeys, [
      {
        type: 'system_key:created',
        key_id,
        key_hash: hash,
        key_prefix: prefix,
        label: 's',
        permissions: ['chat:*'],
        created_at: at,
      },
    ]);
    expect((await bearer(key)).caller).toMatchObject({
      kind: 'system_key',
      account_id: null,
      user_id: null,
      rate_limit: null,
      permissions: new Set(['chat:*']),
    });
    expect((await bearer(key, { account_header: account_id })).caller.account_id).toBe(account_id);
    expect((await bearer(key, { account_header: uuid(99) })).caller.account_id).toBeNull();
    expect((await bearer(key, { account_header: 'x' })).caller.account_id).toBeNull();
    const { caller } = await bearer(fixed.key);
    expect(caller).toMatchObject({ kind: 'system_key', permissions: new Set(['events:*', 'chat:read']) });
    expect(await resolver.revalidate(caller, Date.now())).toEqual({ caller, failure: null });
    expect((await ask({ query_token: key, on_upgrade: true })).failure).toBe('UNAUTHORIZED');
  });

  test('a bad entry of the configuration is named by its number', () =>
    expect(() =>
      createCallerResolver({ db: t.db, tokens, log: silentLog, counts: unlimited, system_keys: ['secret'] }),
    ).toThrow('entry 1'));
});

describe('credentials that fail', () => {
  /** The database itself, and the names of what it was asked. */
  const asked: string[] = [];
  const watched = () =>
    new Proxy(t.db, {
      get: (db, member) =>
        member === 'query'
          ? (text: string, values?: readonly unknown[], name?: string) => {
              asked.push(name ?? text);
              return db.query(text, values, name);
            }
          : Reflect.get(db, member),
    });
  const looked = () => asked.filter((name) => name.startsWith('credential-') && name !== 'credential-key-sieve').length;
  const madeUp = (kind: 'user_api_key' | 'system_key') => generateKey(kind).key;
  let own: CallerResolver;
  let counts: RateLimiter;
  /** As a front door does: a failure that is answered is counted. */
  const from = async (ip: string, token: string, given: Partial<Credentials> = {}) => {
    const resolution = await own.resolve({
      authorization: `Bearer ${token}`,
      query_token: undefined,
      on_upgrade: false,
      account_header: undefined,
      ip,
      now: Date.now(),
      ...given,
    });
    if (resolution.failure !== null) await counts.take(resolution.caller);
    return resolution;
  };
  beforeEach(() => {
    asked.length = 0;
    counts = createRateLimiter({
      limits: createLocalRateLimits(),
      log: silentLog,
      metrics: createPrometheusMetrics({}),
    });
    own = createCallerResolver({
      db: watched(),
      tokens,
      log: silentLog,
      counts,
      system_keys: [`${fixed.hash}=chat:read`],
    });
  });
  afterEach(() => own.close());

  test('are looked up as often as their network may fail, however many come at once', async () => {
    const answers = await Promise.allSettled(
      Array.from({ length: 2_000 }, (_, i) => from('203.0.113.7', madeUp(i % 2 ? 'user_api_key' : 'system_key'))),
    );
    expect(looked()).toBe(120);
    expect(asked.length).toBeLessThan(140);
    const [passed, cut] = [true, false].map((fine) =>
      answers.filter(({ status }) => (status === 'fulfilled') === fine),
    );
    expect([passed!.length, cut!.length]).toEqual([120, 1_880]);
    for (const { value } of passed as PromiseFulfilledResult<Resolution>[]) {
      expect(value).toMatchObject({
        caller: { kind: 'anonymous', rate_bucket: 'failed:203.0.113.7', rate_limit: 120 },
        failure: 'UNAUTHORIZED',
      });
    }
    for (const { reason } of cut as PromiseRejectedResult[]) {
      expect(reason).toMatchObject({ code: 'RATE_LIMIT_EXCEEDED', retry_after_seconds: expect.any(Number) });
    }
  });

  test('and go on failing without a look-up, while right ones of the same network work, new or known', async () => {
    const { key } = await makeKey(bob, ['chat:read']);
    const { access } = await house.open(ada, account_id);
    const known = await makeKey(bob, ['events:read']);
    const each = await world.oneOfEach();
    const [here, next_door] = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9'];
    expect((await from(here, known.key)).failure).toBeNull();
    await Promise.allSettled(Array.from({ length: 200 }, () => from(here, madeUp('user_api_key'))));
    const [header, payload] = access.token.split('.') as [string, string];
    const forged = `${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`;
    const before = looked();
    const made_up = each.map(({ kind }) => generateKey(kind).key);
    for (const wrong of [...made_up, forged, 'lm_usr_short', 'lm_eyJ']) {
      await expect(from(next_door, wrong)).rejects.toMatchObject({ code: 'RATE_LIMIT_EXCEEDED' });
    }
    expect(looked()).toBe(before);
    for (const [token, kind] of [
      [known.key, 'user_api_key'],
      [key, 'user_api_key'],
      [access.token, 'jwt'],
      [fixed.key, 'system_key'],
      ...each.map(({ token, kind }) => [token, kind] as const),
    ] as const) {
      expect(await from(next_door, token)).toMatchObject({ caller: { kind }, failure: null });
    }
    // Who presents nothing is not counted with them, and neither is another network.
    expect((await from(here, '', { authorization: undefined })).caller.rate_bucket).toBe('ip:2001:db8:1:2::/64');
    expect((await from('2001:db8:1:3::1', madeUp('user_api_key'))).failure).toBe('UNAUTHORIZED');
  });

  test('do not count when they were right, or nobody could say', async () => {
    const { key } = await makeKey(bob, ['chat:read']);
    const broken = createCallerResolver({
      db: { query: () => Promise.reject(new Error('no database')) } as unknown as TestDatabase['db'],
      tokens,
      log: silentLog,
      counts,
      system_keys: [],
    });
    const ip = '203.0.113.8';
    const presented = { query_token: undefined, on_upgrade: false, account_header: undefined };
    for (let i = 0; i < 200; i += 1) {
      const authorization = `Bearer ${madeUp('user_api_key')}`;
      await expect(broken.resolve({ authorization, ...presented, ip, now: Date.now() })).rejects.toThrow('no database');
    }
    for (let i = 0; i < 200; i += 1) {
      own.forget({ account_id });
      expect((await from(ip, key)).failure).toBeNull();
    }
    expect(await counts.take(failureBucket(ip))).toMatchObject({ remaining: 119 });
  });
});

test('whether a user belongs to an account is asked once, not once per made-up account', async () => {
  const asked: (string | undefined)[] = [];
  const db = {
    query: (text: string, values?: readonly unknown[], name?: string) => {
      asked.push(name);
      return t.db.query(text, values, name);
    },
  } as unknown as TestDatabase['db'];
  const members = createMemberPermissions({ db });
  const { access } = await house.open(bob, null);
  const { caller } = await bearer(access.token);
  const answers = await Promise.all(Array.from({ length: 300 }, () => members.permissionsOn(caller, randomUUID())));
  expect(answers).toEqual(Array(300).fill(null));
  expect(asked).toEqual(['member-accounts']);
  expect(await members.permissionsOn(caller, account_id)).toEqual(new Set(seededRoles(role_ids)[3]!.permissions));
  const joined = uuid(77);
  await t.db.query(
    'insert into account_members (account_id, user_id, id, role_id, joined_at) values ($1, $2, $3, $4, now())',
    [joined, bob, randomUUID(), role_ids[3]],
  );
  members.forget({ user_id: bob, account_id: joined });
  expect(await members.permissionsOn(caller, joined)).not.toBeNull();
  await t.db.query('delete from account_members where account_id = $1', [joined]);
});

test('features: off by default, on by override, off by the global switch', async () => {
  const features = createFeatureFlags({ db: t.db });
  expect(await features.enabled('feature:events', account_id)).toBe(false);
  await feed(t.db, accounts, [
    { type: 'account:feature_override_set', account_id, flag: 'feature:events', enabled: true, set_at: at },
  ]);
  features.forget({ account_id });
  expect(await features.enabled('feature:events', account_id)).toBe(true);
  expect(await features.enabled('feature:events', uuid(50))).toBe(false);
  await t.db.query(`insert into feature_flags values ('feature:events', false, now())`);
  await until(async () => !(await features.enabled('feature:events', account_id)));
});

test('an Owner holds permissions that came after the account was made', async () => {
  await t.db.query(`update account_roles set permissions = '{chat:read}' where slug = 'owner'`);
  const held = await createMemberPermissions({ db: t.db }).permissionsOn(
    { ...anonymous('203.0.113.9'), kind: 'jwt', user_id: ada },
    account_id,
  );
  expect([...held!]).toEqual(ACCOUNT_PERMISSIONS);
});

test('connections are found at once after they were announced, by every account that has them', async () => {
  const relay = createLocalRelay();
  const lookup = createConnectionLookup({ db: t.db, secrets, relay });
  expect(await lookup.byChannel('kick', '42')).toEqual([]);
  const connected = (id: number, account: string) => ({
    type: 'connection:channel_connected',
    account_id: account,
    connection_id: uuid(id),
    platform: 'kick',
    platform_channel_id: '42',
    connected_at: at,
  });
  await feed(t.db, connections, [connected(60, account_id), connected(61, uuid(70))]);
  await announceChannel(relay, 'kick', '42');
  await new Promise((resume) => setImmediate(resume));
  expect((await lookup.byChannel('kick', '42')).map((one) => one.account_id)).toEqual([account_id, uuid(70)]);
  expect(await lookup.byShopDomain('none.myshopify.com')).toBeNull();
  lookup.close();
  await relay.close();
});

test('a bucket lets its limit through and then says when to come back', async () => {
  const limits = createLocalRateLimits();
  for (let n = 1; n <= 3; n += 1)
    expect(await limits.take('a', 1, 3)).toMatchObject({ allowed: true, remaining: 3 - n });
  const over = await limits.take('a', 1, 3);
  expect(over).toMatchObject({ allowed: false, limit: 3, remaining: 0 });
  expect(over.reset_seconds).toBeGreaterThan(0);
  expect(await limits.take('b', 1, 3)).toMatchObject({ allowed: true });
});

const others: TestDatabase[] = [];
afterAll(() => Promise.all(others.map((one) => one.drop())));
async function elsewhere(): Promise<TestDatabase> {
  const other = await testDatabase();
  others.push(other);
  return other;
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error('it never came to hold');
    await new Promise((resume) => setTimeout(resume, 20));
  }
}
