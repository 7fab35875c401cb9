import { createTokens } from '../../access/authentication/tokens/jwt';
import { actFor, type Act } from '../../app/write-path/act';
import { asOperator } from '../../cli/admin/shared/operator';
import { apiKey, apiKeyStream } from '../../domain/credentials/api-keys';
import { popoutToken, popoutTokenStream } from '../../domain/credentials/popout-tokens';
import type { StoredEvent } from '../../engines/event-store/port';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { loginGrants } from '../../reactors/identity/login-connections';
import { madeWithLogin, recordOrigin, revokeMadeWithLogin } from '../../services/identity/credential-origins';
import { testDatabase, type TestDatabase } from '../support/database';
import { uuid } from '../support/identity';
import { engines, type Engines } from '../support/projections';
import { sessionHouse } from '../support/sessions';

const [user_id, account_id, removed_login, other_login] = [uuid(1), uuid(2), uuid(3), uuid(4)];
const now = '2026-01-02T03:04:05.000Z';
const made_by = { account_id, user_id, permissions: ['events:read'], expires_at: null };

describe('what was made in a session', () => {
  let t: TestDatabase;
  let on: Engines;
  let act: Act;
  let sessions: Record<'of_login' | 'of_other' | 'of_earlier_release' | 'of_caller', string>;
  beforeAll(async () => {
    t = await testDatabase();
    on = await engines(t.db);
    const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
    const tokens = await createTokens({ db: t.db, secrets });
    const house = sessionHouse({ db: t.db, events: on.events, tokens });
    act = actFor(asOperator('test'), {
      events: on.events,
      awaitShown: async () => undefined,
      commit: (_request, writes) => on.events.append(writes, {}),
    });
    await t.db.query('insert into users (id, created_at) values ($1, now())', [user_id]);
    const open = async (login: string | null) => {
      const { session_id } = await house.open(user_id, null);
      await t.db.query('update sessions set login_connection_id = $2 where id = $1', [session_id, login]);
      return session_id;
    };
    sessions = {
      of_login: await open(removed_login),
      of_other: await open(other_login),
      // Sessions of earlier releases know no login.
      of_earlier_release: await open(null),
      of_caller: await open(null),
    };
  });
  afterAll(async () => {
    await on.close();
    await t.drop();
  });

  async function makeKey(n: number, session: string): Promise<string> {
    const key_id = uuid(n);
    const origin = { credential_id: key_id, kind: 'api_key', account_id } as const;
    expect(await recordOrigin(t.db, { kind: 'jwt', credential_id: session }, origin)).toBe(true);
    const shown = { key_hash: `hash ${n}`, key_prefix: 'lm_usr_00', label: 'Bot' };
    await act(apiKey, apiKeyStream(key_id), { type: 'api_key:create', key_id, ...made_by, ...shown });
    return key_id;
  }
  async function makeToken(n: number, maker: string): Promise<string> {
    const token_id = uuid(n);
    const origin = { credential_id: token_id, kind: 'popout_token', account_id } as const;
    expect(await recordOrigin(t.db, { kind: 'user_api_key', credential_id: maker }, origin)).toBe(true);
    const shown = { created_by: user_id, token_hash: `hash ${n}`, token_prefix: 'lm_pop_00', label: null };
    await act(popoutToken, popoutTokenStream(token_id), {
      type: 'popout_token:create',
      token_id,
      ...made_by,
      ...shown,
    });
    return token_id;
  }
  const isRevoked = async (stream: string) => {
    const types = (await on.events.read(stream)).map(({ type }) => type);
    return types.some((type) => type.endsWith(':revoked'));
  };

  test('is refused at once after a removal that died, and revoked by the reactor; the rest stays', async () => {
    const key = await makeKey(10, sessions.of_login);
    const earlier = await makeKey(11, sessions.of_earlier_release);
    const kept = [await makeKey(12, sessions.of_other), await makeKey(13, sessions.of_caller)];
    const token = await makeToken(14, key);
    const kept_token = await makeToken(15, kept[0]!);
    // The row of a key whose command died before the event.
    const never = { credential_id: uuid(16), kind: 'api_key', account_id } as const;
    await recordOrigin(t.db, { kind: 'jwt', credential_id: sessions.of_login }, never);

    const removed = {
      ...({ user_id, login_connection_id: removed_login, provider: 'kick', identity: 'a'.repeat(64) } as const),
      ...{ removed_with: null, session_id: sessions.of_caller, disconnected_at: now },
    };
    const killed = new Error('killed');
    const dying: Act = () => Promise.reject(killed);
    await expect(revokeMadeWithLogin(dying, { db: t.db }, removed)).rejects.toBe(killed);
    const revoked = await t.db.query('select credential_id from revocations order by credential_id');
    expect(revoked.map(({ credential_id }) => credential_id)).toEqual([key, earlier, token, uuid(16)]);

    const writes: [string, readonly unknown[]][] = [];
    await loginGrants.react({ type: 'user:login_disconnected', data: removed } as unknown as StoredEvent, {
      ...{ act, db: t.db, now, enqueue: () => undefined, cancel: () => undefined },
      keep: (text, values) => void writes.push([text, values]),
    });
    for (const [text, values] of writes) await t.db.query(text, values);
    const ended = [apiKeyStream(key), apiKeyStream(earlier), popoutTokenStream(token)];
    expect(await Promise.all(ended.map(isRevoked))).toEqual([true, true, true]);
    const left = [...kept.map(apiKeyStream), popoutTokenStream(kept_token)];
    expect(await Promise.all(left.map(isRevoked))).toEqual([false, false, false]);
    const rows = await t.db.query('select credential_id from credential_origins order by credential_id');
    expect(rows.map(({ credential_id }) => credential_id)).toEqual([...kept, kept_token]);

    // A request of an ended session that is still under way makes nothing.
    const late = { credential_id: uuid(17), kind: 'api_key', account_id } as const;
    expect(await recordOrigin(t.db, { kind: 'jwt', credential_id: sessions.of_login }, late)).toBe(false);
  });

  test('ends by name after the reactor has forgotten it, so that no node answers it from memory', async () => {
    const key = await makeKey(20, sessions.of_other);
    const login = { user_id, login_connection_id: other_login, session_id: null };
    const known = await madeWithLogin(t.db, login);
    expect(known).toContainEqual({ credential_id: key, kind: 'api_key' });
    await t.db.query('delete from credential_origins where credential_id = $1', [key]);
    const announced: unknown[] = [];
    const access = { announce: async (change: object) => void announced.push(change) };
    await revokeMadeWithLogin(act, { db: t.db, access }, login, known);
    expect(announced).toContainEqual({ credential_id: key });
    expect(await isRevoked(apiKeyStream(key))).toBe(true);
  });
});
