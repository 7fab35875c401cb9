import { mintBoundToken } from '../../access/authentication/tokens/bound-tokens';
import type { Caller } from '../../access/authentication/caller';
import { generateKey } from '../../access/authentication/keys';
import { batchLookups, type CredentialLookup } from '../../access/authentication/memory/credential-lookups';
import type { Queryable, Row } from '../../engines/postgres/port';
import { Revalidation } from '../../realtime/runtime/session/revalidation';
import type { Session } from '../../realtime/runtime/session/session';
import { account_id, ada, credentialHouse, type CredentialHouse } from '../support/credentials';
import { testDatabase, type TestDatabase } from '../support/database';
import { uuid } from '../support/identity';
import { silentLog } from '../support/log';
import { caller } from '../support/realtime';

describe('questions asked together', () => {
  let t: TestDatabase;
  let statements: string[];
  let db: Queryable;
  beforeAll(async () => {
    t = await testDatabase(2);
    db = {
      query: <R extends Row>(text: string, values?: readonly unknown[], name?: string) => {
        statements.push(text);
        return t.db.query<R>(text, values, name);
      },
    };
  });
  beforeEach(() => (statements = []));
  afterAll(() => t.drop());

  const half: CredentialLookup<{ n: number; of: string }, string | null> = {
    name: 'test-half',
    takes: { n: 'float8' },
    sql: ({ n }) => `select ${n} / 2 as half where ${n} <> 3`,
    found: (row, { of }) => (row ? `${of} ${row.half}` : null),
  };
  const broken: CredentialLookup<{ n: number }, number> = {
    name: 'test-broken',
    takes: { n: 'float8' },
    sql: ({ n }) => `select 1 / (${n} - ${n})::int as x`,
    found: () => 0,
  };

  test('of one turn are one statement for each 500, and each gets its own answer', async () => {
    const ask = batchLookups(db);
    const found = await Promise.all(Array.from({ length: 1_200 }, (_, n) => ask(half, { n, of: `no ${n}` })));
    expect(found.slice(0, 5)).toEqual(['no 0 0', 'no 1 0.5', 'no 2 1', null, 'no 4 2']);
    expect(found[1_199]).toBe('no 1199 599.5');
    expect(statements).toHaveLength(3);
  });

  test('of several kinds are one statement; one kind that fails fails by itself', async () => {
    const ask = batchLookups(db);
    const other = { ...half, name: 'test-other' };
    expect(await Promise.all([ask(half, { n: 4, of: 'a' }), ask(other, { n: 6, of: 'b' })])).toEqual(['a 2', 'b 3']);
    expect(statements).toHaveLength(1);
    const outcomes = await Promise.allSettled([ask(half, { n: 4, of: 'a' }), ask(broken, { n: 1 })]);
    expect(outcomes).toMatchObject([{ value: 'a 2' }, { status: 'rejected', reason: { message: /division by zero/ } }]);
  });
});

describe('what open sockets still may', () => {
  let world: CredentialHouse;
  beforeAll(async () => {
    world = await credentialHouse();
  });
  afterAll(() => world.close());

  test('is asked in one statement for each 500, of sessions, keys and tokens', async () => {
    const { t } = world;
    let asked = 0;
    const counted = new Proxy(t.db, {
      get: (db, name) =>
        name !== 'query'
          ? Reflect.get(db, name)
          : (...given: Parameters<typeof db.query>) => {
              asked += given[0].includes('credential_uses') ? 0 : 1;
              return db.query(...given);
            },
    });
    const resolver = world.resolver(counted);
    const present = async (token: string) => {
      const resolved = await resolver.resolve({
        authorization: `Bearer ${token}`,
        query_token: undefined,
        on_upgrade: true,
        account_header: undefined,
        ip: '203.0.113.9',
        now: Date.now(),
      });
      return resolved.caller;
    };
    const keys = Array.from({ length: 300 }, () => generateKey('service_key'));
    await t.db.query(
      `insert into service_keys (id, account_id, key_hash, key_prefix, label, permissions, created_by, created_at, updated_at)
       select gen_random_uuid(), $1, hash, 'lm_svc_00', 'x', '{events:read,chat:read}', $2, now(), now()
       from unnest($3::text[]) hash`,
      [account_id, ada, keys.map(({ hash }) => hash)],
    );
    const overlays = await Promise.all(
      Array.from({ length: 300 }, (_, n) =>
        mintBoundToken(
          { db: t.db },
          { kind: 'overlay', account_id, resource_id: uuid(500 + n), channel: `overlay:k${n}`, expires_at: null },
        ),
      ),
    );
    asked = 0;
    const tokens = [...keys.map(({ key }) => key), ...overlays.map(({ token }) => token)];
    const callers = await Promise.all(tokens.map(present));
    expect(asked).toBeLessThanOrEqual(2);
    expect(new Set(callers.map(({ kind }) => kind))).toEqual(new Set(['service_key', 'overlay']));
    // All who hold the same permissions share one set.
    expect(new Set(callers.map(({ permissions }) => permissions)).size).toBe(2);

    await t.db.query('insert into revocations (credential_id) values ($1)', [callers[7]!.credential_id]);
    await t.db.query('delete from bound_tokens where id = $1', [overlays[3]!.id]);
    asked = 0;
    const now = Date.now();
    const looked = await Promise.all(callers.map((held) => resolver.revalidate(held, now)));
    expect(asked).toBe(2);
    const gone = looked.flatMap(({ caller: found }, place) => (found === null ? [place] : []));
    expect(gone).toEqual([7, 303]);
    expect(looked[8]!.caller).toEqual(callers[8]);
    expect(looked[300]!.caller).toEqual(callers[300]);
    await resolver.close();
  });

  /** Counts what beats ask about: sockets that came at the beats given. */
  async function asked(arrivals: readonly number[], beats: number): Promise<{ each: number[]; statements: number[] }> {
    const sessions = new Map<string, Session>();
    const each = arrivals.map(() => 0);
    let statements = 0;
    let waiting: (() => void)[] = [];
    const answered = async (held: Caller) => {
      each[Number(held.credential_id)]! += 1;
      if (waiting.length % 500 === 0) statements += 1;
      await new Promise<void>((resolve) => waiting.push(resolve));
      return { caller: held, failure: null } as const;
    };
    const unused = {} as never;
    const end = () => {
      throw new Error('nobody ends');
    };
    const revalidation = new Revalidation({
      sessions,
      hub: unused,
      gates: unused,
      revalidate: answered,
      end,
      log: silentLog,
    });
    const per_beat: number[] = [];
    for (let beat = 0; beat <= beats; beat += 1) {
      if (beat > 0) revalidation.beat();
      for (let rounds = 0; rounds < 100; rounds += 1) {
        const answers = waiting;
        waiting = [];
        for (const answer of answers) answer();
        for (let turns = 0; turns < 5; turns += 1) await Promise.resolve();
      }
      per_beat.push(statements);
      statements = 0;
      arrivals.forEach((arrival, credential) => {
        if (arrival !== beat) return;
        const session = { caller: caller({ credential_id: String(credential) }), closing: false, subscriptions: [] };
        sessions.set(String(credential), session as unknown as Session);
        revalidation.admitted(session as unknown as Session);
      });
    }
    return { each, statements: per_beat };
  }

  test('is asked once in six beats of those who came together, in one statement where that is enough', async () => {
    const { each, statements } = await asked(Array<number>(300).fill(0), 12);
    expect(new Set(each)).toEqual(new Set([2]));
    expect(statements).toEqual([0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
  });

  test('is asked of all at once where they came one by one', async () => {
    const { each, statements } = await asked([0, 1, 2, 3, 4, 5, 6, 7, 8], 18);
    expect(statements.reduce((sum, count) => sum + count)).toBe(3);
    expect(Math.min(...each)).toBe(2);
  });

  test('is asked of a crowd spread over the beats, in no more statements than 500 each make, and of nobody late', async () => {
    const { each, statements } = await asked(Array<number>(10_000).fill(0), 24);
    const rounds = [0, 1, 2, 3].map((round) => statements.slice(1 + 6 * round, 7 + 6 * round));
    for (const round of rounds) expect(round.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(20);
    expect(Math.max(...statements)).toBeLessThanOrEqual(5);
    expect(Math.min(...each)).toBe(4);
  });
});
