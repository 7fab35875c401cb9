import { randomUUID } from 'node:crypto';
import { mintBoundToken } from '../../access/authentication/tokens/bound-tokens';
import type { KeyKind } from '../../access/authentication/contexts';
import type { RateLimiter } from '../../access/limits/rate-limiter';
import { generateKey } from '../../access/authentication/keys';
import { type CallerResolver, createCallerResolver } from '../../access/authentication/resolve';
import { createTokens, type Tokens } from '../../access/authentication/tokens/jwt';
import { seededRoles } from '../../domain/accounts/roles';
import type { Database } from '../../engines/postgres/port';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { accounts } from '../../projections/accounts/accounts';
import { apiKeys } from '../../projections/credentials/api-keys';
import { serviceKeys } from '../../projections/credentials/service-keys';
import { systemKeys } from '../../projections/credentials/system-keys';
import { popoutTokens } from '../../projections/credentials/popout-tokens';
import { users } from '../../projections/identity/users';
import { type TestDatabase, testDatabase } from './database';
import { feed, uuid } from './identity';
import { silentLog } from './log';
import { engines, type Engines } from './projections';
import { sessionHouse, type SessionHouse } from './sessions';

export const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
export const unlimited: RateLimiter = {
  take: async () => null,
  wait: async () => null,
  pace: async () => 0,
  giveBack: () => undefined,
};
/** When everything here was made. */
export const at = '2026-01-02T03:04:05.000Z';
/** Ada owns the account and is a super admin, Bob is a viewer of it. */
export const [account_id, ada, bob] = [uuid(1), uuid(2), uuid(3)] as const;
export const role_ids = [uuid(11), uuid(12), uuid(13), uuid(14)];

/** A database with an account and its people, and credentials of theirs. */
export interface CredentialHouse {
  t: TestDatabase;
  on: Engines;
  tokens: Tokens;
  sessions: SessionHouse;
  /** A resolver over the database, or over what stands before it. */
  resolver(db?: Database, system_keys?: readonly string[]): CallerResolver;
  makeKey(
    user_id: string,
    permissions: string[],
    expires_at?: string | null,
  ): Promise<{ key_id: string; key: string; hash: string }>;
  /** A key or token of each kind that has a secret. */
  oneOfEach(): Promise<{ kind: KeyKind; token: string; id: string }[]>;
  close(): Promise<void>;
}

export async function credentialHouse(): Promise<CredentialHouse> {
  const t = await testDatabase();
  const on = await engines(t.db);
  const tokens = await createTokens({ db: t.db, secrets });
  const user = (user_id: string) => ({ type: 'user:registered', user_id, registered_at: at });
  await feed(t.db, users, [
    user(ada),
    user(bob),
    { type: 'user:admin_role_assigned', user_id: ada, role: 'super-admin', assigned_at: at },
  ]);
  await feed(t.db, accounts, [
    {
      type: 'account:created',
      account_id,
      name: 'A',
      description: null,
      plan: 'free',
      owner_id: ada,
      roles: seededRoles(role_ids),
      membership_id: uuid(4),
      created_at: at,
    },
    {
      type: 'account:member_added',
      account_id,
      membership_id: uuid(5),
      user_id: bob,
      role_id: role_ids[3],
      added_at: at,
    },
  ]);

  const made = { account_id, created_at: at, label: 'k', expires_at: null };
  const keyOf = (kind: KeyKind) => {
    const { key, hash, prefix } = generateKey(kind);
    const hashed = { key_hash: hash, token_hash: hash, key_prefix: prefix, token_prefix: prefix };
    return { kind, token: key, id: randomUUID(), ...made, ...hashed, permissions: ['chat:read'] };
  };
  async function makeKey(user_id: string, permissions: string[], expires_at: string | null = null) {
    const { token, id: key_id, ...rest } = keyOf('user_api_key');
    const created = { type: 'api_key:created', ...rest, key_id, user_id, permissions, expires_at };
    await feed(t.db, apiKeys, [created]);
    return { key_id, key: token, hash: rest.key_hash };
  }

  return {
    t,
    on,
    tokens,
    sessions: sessionHouse({ db: t.db, events: on.events, tokens }),
    resolver: (db = t.db, system_keys = []) =>
      createCallerResolver({ db, tokens, log: silentLog, counts: unlimited, system_keys }),
    makeKey,
    async oneOfEach() {
      const [system, service, popout] = [keyOf('system_key'), keyOf('service_key'), keyOf('popout')];
      await feed(t.db, systemKeys, [{ type: 'system_key:created', key_id: system.id, ...system }]);
      const by = { user_id: bob, created_by: bob, made_with: null };
      await feed(t.db, serviceKeys, [{ type: 'account:service_key_created', key_id: service.id, ...by, ...service }]);
      await feed(t.db, popoutTokens, [{ type: 'popout_token:created', token_id: popout.id, ...by, ...popout }]);
      const own = await makeKey(bob, ['chat:read']);
      const bound = await Promise.all(
        (['overlay', 'shared_overlay', 'extension', 'widget'] as const).map(async (kind) => {
          const of = { kind, account_id, resource_id: uuid(1), channel: 'x:1', expires_at: Date.now() + 60_000 };
          return { kind, ...(await mintBoundToken(t, of)) };
        }),
      );
      return [{ kind: 'user_api_key', token: own.key, id: own.key_id }, system, service, popout, ...bound];
    },
    async close() {
      await on.close();
      await t.drop();
    },
  };
}
