import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallerKind } from '../../access/authentication/caller';
import {
  CONTEXTS,
  contextOf,
  tokenKind,
  wellFormed,
  type KeyKind,
  type Transport,
} from '../../access/authentication/contexts';
import { generateKey } from '../../access/authentication/keys';
import { choose, createCallerResolver } from '../../access/authentication/resolve';
import { GUARD_MESSAGES, authorise, gateOf } from '../../api/rest/guard';
import { firstParty } from '../../access/authorization/guards';
import { silentLog } from '../support/log';

interface Expected {
  prefix: string | null;
  length: number | null;
  came: readonly Transport[];
  rate: number | null;
  sockets: number | null;
  rbac: boolean;
  first_party: boolean;
}

const HEADER: readonly Transport[] = ['header'];
const BOTH: readonly Transport[] = ['header', 'query'];
const source = (prefix: string, length: number): Expected => ({
  prefix,
  length,
  came: BOTH,
  rate: 600,
  sockets: 100,
  rbac: false,
  first_party: false,
});

/** Spec doc1 §5.1, 5.2, 5.6, 5.8; rulings c25 and "sockets per caller". */
const SPEC: Record<CallerKind, Expected> = {
  system_key: {
    prefix: 'lm_sys_',
    length: 71,
    came: HEADER,
    rate: null,
    sockets: null,
    rbac: true,
    first_party: false,
  },
  user_api_key: {
    prefix: 'lm_usr_',
    length: 71,
    came: HEADER,
    rate: 1200,
    sockets: 100,
    rbac: true,
    first_party: true,
  },
  service_key: {
    prefix: 'lm_svc_',
    length: 71,
    came: HEADER,
    rate: 1200,
    sockets: 100,
    rbac: true,
    first_party: false,
  },
  jwt: {
    prefix: 'lm_eyJ',
    length: null,
    came: ['header', 'upgrade_query'],
    rate: 600,
    sockets: 100,
    rbac: true,
    first_party: true,
  },
  popout: { prefix: 'lm_pop_', length: 71, came: BOTH, rate: 600, sockets: 100, rbac: true, first_party: false },
  overlay: source('lm_overlay_', 75),
  shared_overlay: source('lm_share_', 73),
  extension: source('lm_ext_', 71),
  widget: source('lm_widget_', 74),
  anonymous: { prefix: null, length: null, came: [], rate: 120, sockets: 20, rbac: false, first_party: false },
};
const KINDS = Object.keys(SPEC) as CallerKind[];

test('the table has the ten contexts of the specification', () => {
  expect(Object.keys(CONTEXTS).sort()).toEqual([...KINDS].sort());
});

describe.each(KINDS)('%s', (kind) => {
  const { prefix, length, came, rate, sockets, rbac, first_party } = SPEC[kind];
  const token = `${prefix}${'0'.repeat((length ?? 0) - (prefix ?? '').length > 0 ? length! - prefix!.length : 9)}`;

  test('is what the specification says', () => {
    const { transports, ...facts } = contextOf(kind);
    expect(facts).toMatchObject({ prefix, length, rate, sockets, rbac, first_party });
    expect([...transports].sort()).toEqual([...came].sort());
  });

  test('passes the first-party gate as the specification says', async () => {
    const caller = { kind, account_id: 'a', permissions: new Set<string>() } as never;
    const passing = async () => authorise(gateOf({ guard: [firstParty] }), caller, {} as never);
    const refusal = kind === 'anonymous' ? GUARD_MESSAGES.unauthenticated : GUARD_MESSAGES.first_party;
    const outcome = await passing().then(
      () => 'passed',
      (error: Error) => error.message,
    );
    expect(outcome).toBe(first_party ? 'passed' : refusal);
  });

  if (prefix !== null) {
    test('is recognised by its prefix, and malformed with a character more or less', () => {
      expect(tokenKind(token)).toBe(kind);
      if (length === null) return;
      expect([token, token.slice(1), `${token}0`].map((one) => wellFormed(kind, one))).toEqual([true, false, false]);
    });

    test.each([false, true])('counts where it may come (upgrade: %p)', (on_upgrade) => {
      const by = (authorization?: string, query_token?: string) =>
        choose({ authorization, query_token, on_upgrade }).presented?.kind ?? null;
      const in_query = came.includes('query') || (on_upgrade && came.includes('upgrade_query'));
      expect([by(`Bearer ${token}`), by(undefined, token)]).toEqual([kind, in_query ? kind : null]);
    });
  }
});

describe('keys are looked up by their SHA-256, and nothing of them is seen before it', () => {
  const keys = KINDS.filter((kind) => SPEC[kind].length !== null) as KeyKind[];

  test.each(keys)('%s', async (kind) => {
    const asked: unknown[] = [];
    const nothing = { db: { query: async (_text: string, values: readonly unknown[]) => (asked.push(...values), []) } };
    const counts = { take: async () => null, wait: async () => null, pace: async () => 0, giveBack: () => undefined };
    const resolver = createCallerResolver({
      ...({ ...nothing, tokens: {}, log: silentLog, counts } as never as Parameters<typeof createCallerResolver>[0]),
      system_keys: [],
    });
    const { key, hash } = generateKey(kind);
    const ask = (token: string) =>
      resolver.resolve({
        ...{ authorization: `Bearer ${token}`, query_token: undefined, on_upgrade: false, account_header: undefined },
        ...{ ip: '::1', now: Date.now() },
      });
    expect((await ask(key)).failure).toBe('UNAUTHORIZED');
    // Its hash, and for kinds that share a table the kind: no part of the key.
    expect(asked.filter((value) => value !== kind && value !== null)).toEqual([hash]);
    // What cannot be one is not looked up at all.
    for (const none of [key.slice(0, -1), `${key}0`, key.toUpperCase(), `${key.slice(0, -1)}z`]) await ask(none);
    expect(asked.filter((value) => value !== kind && value !== null)).toEqual([hash]);
  });

  test('a stored secret is in no table: what is kept of a key is its hash, in an index of its own', () => {
    const schema = readFileSync(join(__dirname, '../../migrations/schema.sql'), 'utf8');
    for (const table of ['api_keys', 'service_keys', 'system_keys', 'popout_tokens', 'bound_tokens']) {
      const columns = new RegExp(`create table ${table} \\(([^;]*)\\);`).exec(schema)![1]!;
      expect(columns).toMatch(/(key|token)_hash text not null/i);
      expect(columns).not.toMatch(/\b(key|token|secret) /);
      expect(schema).toMatch(new RegExp(`${table}_(key|token)_hash_key UNIQUE`));
    }
  });
});
