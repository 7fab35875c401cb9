import { createHmac, generateKeyPairSync, sign as signWith, type KeyObject } from 'node:crypto';
import { replaceSigningKeys, rotateSigningKey } from '../../access/authentication/tokens/signing-keys';
import { withoutReadYourWrites } from '../../app/service-calls';
import { createTokens, type Tokens } from '../../access/authentication/tokens/jwt';
import { replaceSigning, rotateSigning } from '../../cli/admin/signing-keys';
import type { AdminServices } from '../../cli/admin/shared/operator';
import { SIGNING_KEYS_STREAM } from '../../domain/credentials/signing-keys';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { testDatabase, type TestDatabase } from '../support/database';
import { uuid } from '../support/identity';

const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
const DAY = 86_400_000;
const base64url = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const headerOf = (token: string) => JSON.parse(Buffer.from(token.slice(3).split('.')[0]!, 'base64url').toString());

let t: TestDatabase;
beforeEach(async () => void (t = await testDatabase()));
afterEach(() => t.drop());

/** A node that looks again whenever it signs. */
const node = (): Promise<Tokens> => createTokens({ db: t.db, secrets, known_for_ms: -1 });
const given = (one: Tokens, use: 'access' | 'ws' | 'refresh' = 'access') =>
  one.sign({ sub: uuid(1), account_id: null, session_id: uuid(2), use }, Date.now(), 60_000);
const passes = async (one: Tokens, token: string) => (await one.verify(token, Date.now())).failure;

describe('the key that signs', () => {
  test('is made once by nodes that start together', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(node));
    const { token } = await given(all[0]!);
    expect(await Promise.all(all.map((one) => passes(one, token)))).toEqual([null, null, null, null]);
    const { keys } = await all[0]!.jwks();
    expect(keys).toHaveLength(1);
    expect(Object.keys(keys[0]!).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x']);
  });

  test('is followed by a new one on every node, without a restart, and no node refuses any of them', async () => {
    const [one, two] = [await node(), await node()];
    const before = (await given(one)).token;
    const made = await rotateSigningKey({ db: t.db, secrets }, 30 * DAY);
    expect(Date.parse(made.signs_from) - Date.now()).toBeGreaterThan(55_000);
    expect(Date.parse(made.others_verify_until)).toBeGreaterThan(Date.now() + 30 * DAY);
    // It is shown before it signs.
    expect(headerOf((await given(one)).token).kid).toBe(headerOf(before).kid);
    expect((await one.jwks()).keys.map(({ kid }) => kid)).toEqual([headerOf(before).kid, made.kid]);
    expect((await rotateSigningKey({ db: t.db, secrets }, 30 * DAY)).kid).toBe(made.kid);

    await t.db.query(`update signing_keys set signs_from = clock_timestamp() where kid = $1`, [made.kid]);
    const after = (await given(one)).token;
    expect(headerOf(after).kid).toBe(made.kid);
    // Every node has looked again within the minute.
    expect((await two.jwks()).keys).toHaveLength(2);
    for (const token of [before, after]) expect(await passes(two, token)).toBeNull();
    expect(headerOf((await given(two)).token).kid).toBe(made.kid);
  });

  test('is rotated and replaced by an operator with events for the audit log', async () => {
    const store = await createPostgresEventStore({ pool: t.db.pool, wakeups: createLocalWakeups() });
    const services = { db: t.db, secrets, ...withoutReadYourWrites(store, () => ({ actor_kind: 'system_key' })) };
    const { kid, signs_from } = await rotateSigning(services as unknown as AdminServices, 30 * DAY);
    const replaced = await replaceSigning(services as unknown as AdminServices);
    const events = await store.read(SIGNING_KEYS_STREAM);
    expect(events.map(({ type, data }) => ({ type, ...data }))).toMatchObject([
      { type: 'signing_key:rotated', key_id: kid, signs_from: new Date(signs_from).toISOString() },
      { type: 'signing_key:replaced', key_id: replaced.kid },
    ]);
    await store.close();
  });

  test('verifies no longer when its last token has ended', async () => {
    const one = await node();
    const before = (await given(one)).token;
    await rotateSigningKey({ db: t.db, secrets }, 30 * DAY, 0);
    await t.db.query('update signing_keys set verifies_until = clock_timestamp() where verifies_until is not null');
    expect((await one.jwks()).keys).toHaveLength(1);
    expect(await passes(one, before)).toBe('invalid');
    await rotateSigningKey({ db: t.db, secrets }, 30 * DAY, 0);
    expect(await t.db.query('select 1 from signing_keys')).toHaveLength(2);
  });

  test('is replaced at once where somebody else may have it: what it signed is right nowhere', async () => {
    const [one, two] = [await createTokens({ db: t.db, secrets }), await createTokens({ db: t.db, secrets })];
    const before = (await given(one)).token;
    expect(await passes(two, before)).toBeNull();
    const { kid } = await replaceSigningKeys({ db: t.db, secrets });
    // Every node is told by a revocation that names nobody.
    expect(await t.db.query('select credential_id, user_id, account_id from revocations')).toEqual([
      { credential_id: null, user_id: null, account_id: null },
    ]);
    for (const each of [one, two]) {
      each.forget();
      expect(await passes(each, before)).toBe('invalid');
      expect(headerOf((await given(each)).token).kid).toBe(kid);
    }
    expect(await passes(one, (await given(two)).token)).toBeNull();
  });

  test('ends with its replacement on a node that only verifies and got no revocation', async () => {
    const [one, two] = [await node(), await node()];
    const before = (await given(one)).token;
    expect(await passes(two, before)).toBeNull();
    await replaceSigningKeys({ db: t.db, secrets });
    expect(await passes(two, before)).toBe('invalid');
  });

  test('counts no more when it is forgotten while a look is under way', async () => {
    const before = (await given(await node())).token;
    let release: () => void = () => undefined;
    let query = t.db.query.bind(t.db);
    const transaction = t.db.transaction.bind(t.db);
    const db = { query: (...args: Parameters<typeof query>) => query(...args), transaction } as typeof t.db;
    const slow = await createTokens({ db, secrets, known_for_ms: -1 });
    const held = new Promise<void>((resolve) => (release = resolve));
    const asked = query;
    query = (async (...args: Parameters<typeof asked>) => {
      const rows = await asked(...args);
      await held;
      return rows;
    }) as typeof query;
    const looked = slow.jwks();
    await replaceSigningKeys({ db: t.db, secrets });
    query = asked;
    slow.forget();
    release();
    await looked;
    expect(await passes(slow, before)).toBe('invalid');
  });

  test('goes on while the database is away', async () => {
    const away = { ...t.db, query: () => Promise.reject(new Error('away')), transaction: t.db.transaction.bind(t.db) };
    let query = t.db.query.bind(t.db);
    const db = { ...away, query: (...args: Parameters<typeof query>) => query(...args) } as typeof t.db;
    const one = await createTokens({ db, secrets, known_for_ms: -1 });
    query = away.query as typeof query;
    expect(await passes(one, (await given(one)).token)).toBeNull();
  });
});

describe('a token that nobody of us signed so', () => {
  let one: Tokens;
  let right: string;
  beforeEach(async () => {
    one = await node();
    right = (await given(one)).token.slice(3);
  });
  const parts = () => right.split('.') as [string, string, string];
  const claims = () => JSON.parse(Buffer.from(parts()[1], 'base64url').toString()) as Record<string, unknown>;
  const signedBy = (key: KeyObject, header: object, payload: object) => {
    const text = `${base64url(header)}.${base64url(payload)}`;
    return `${text}.${signWith(null, Buffer.from(text), key).toString('base64url')}`;
  };

  test('is refused, whatever it says of its algorithm, key and claims', async () => {
    const [header, payload, signature] = parts();
    const { kid } = headerOf(`lm_${right}`);
    const mine = generateKeyPairSync('ed25519');
    const jwk = mine.publicKey.export({ format: 'jwk' });
    const [published] = (await one.jwks()).keys;
    const hmac = (secret: string) => {
      const text = `${base64url({ alg: 'HS256', kid, typ: 'JWT' })}.${payload}`;
      return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
    };
    const forged = {
      'no algorithm, no signature': `${base64url({ alg: 'none', kid })}.${payload}.`,
      'no algorithm, the old signature': `${base64url({ alg: 'none', kid })}.${payload}.${signature}`,
      NONE: `${base64url({ alg: 'NONE', kid })}.${payload}.`,
      'HMAC under the public key': hmac(published!.x),
      'HMAC under the public key as JSON': hmac(JSON.stringify(published)),
      'a key of its own under our id': signedBy(mine.privateKey, { alg: 'EdDSA', kid }, claims()),
      'a key of its own in the header': signedBy(mine.privateKey, { alg: 'EdDSA', kid, jwk }, claims()),
      'a key by address': signedBy(mine.privateKey, { alg: 'EdDSA', kid, jku: 'https://evil.example/jwks' }, claims()),
      'an unknown id': signedBy(mine.privateKey, { alg: 'EdDSA', kid: uuid(9) }, claims()),
      'no id': signedBy(mine.privateKey, { alg: 'EdDSA' }, claims()),
      'SQL for an id': signedBy(mine.privateKey, { alg: 'EdDSA', kid: "' or '1'='1" }, claims()),
      'a path for an id': signedBy(mine.privateKey, { alg: 'EdDSA', kid: '../../dev/null' }, claims()),
      'a member of objects for an id': signedBy(mine.privateKey, { alg: 'EdDSA', kid: '__proto__' }, claims()),
      'no text for an id': signedBy(mine.privateKey, { alg: 'EdDSA', kid: { $ne: null } }, claims()),
      'an extension that must be understood': `${base64url({ alg: 'EdDSA', kid, crit: ['x'], x: 1 })}.${payload}.${signature}`,
      'another user': `${header}.${base64url({ ...claims(), sub: uuid(7) })}.${signature}`,
      'another account': `${header}.${base64url({ ...claims(), account_id: uuid(7) })}.${signature}`,
      'another use': `${header}.${base64url({ ...claims(), use: 'refresh' })}.${signature}`,
      'a longer life': `${header}.${base64url({ ...claims(), exp: 9_999_999_999 })}.${signature}`,
      'another signature': `${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`,
      'no signature': `${header}.${payload}.`,
      'two parts': `${header}.${payload}`,
      'four parts': `${right}.${signature}`,
      nothing: '',
    };
    const passed: string[] = [];
    for (const [what, token] of Object.entries(forged)) {
      if ((await passes(one, `lm_${token}`)) !== 'invalid') passed.push(what);
    }
    expect(passed).toEqual([]);
    expect(await passes(one, `lm_${right}`)).toBeNull();
  });
});
