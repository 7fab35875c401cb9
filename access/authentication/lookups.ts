import { SUPER_ADMIN } from '../../domain/operators/admin-roles';
import type { Row } from '../../engines/postgres/port';
import { BOUND_TOKEN, type BoundKind } from './tokens/bound-tokens';
import { NO_PERMISSIONS, unauthorized, type Recognised } from './caller';
import { CONTEXTS } from './contexts';
import { EXPIRES_AT, callerFromKeyRow } from './key-rows';
import { internString } from './memory/intern';
import { oauthClientCaller, type ClientToken } from './oauth-lookups';
import { findPopoutSession, POPOUT_TOKEN } from './tokens/popout-tokens';
import type { LookupRunner, CredentialLookup } from './memory/credential-lookups';
import { grantedBy, grantedToAdmin, type AdminRow, type RoleRow } from '../authorization/role-grants';
import { hashJti, type Claims } from './tokens/jwt';
import { grantedToUser, userPermissionsOf } from './user-permissions';

/** A system key of the static configuration. */
export interface StaticSystemKey {
  credential_id: string;
  grants: ReadonlySet<string>;
}

/**
 * Reads `auth.system_keys`: SHA-256 hex of a key, `=`, its grants joined by `+`. Throws with the entry's number, never
 * its content.
 */
export function parseSystemKeys(entries: readonly string[]): Map<string, StaticSystemKey> {
  return new Map(
    entries.map((entry, index) => {
      const match = /^([0-9a-f]{64})=([a-z0-9_:*+-]+)$/i.exec(entry);
      if (!match) throw new Error(`auth.system_keys: entry ${index + 1} is not <sha256 hex>=<grant>+<grant>`);
      const hash = match[1]!.toLowerCase();
      return [
        hash,
        { credential_id: `static-${hash.slice(0, 16)}`, grants: new Set(match[2]!.split('+').filter(Boolean)) },
      ];
    }),
  );
}

/** Input of the session look-up; `account_id` as in the token, times in Unix milliseconds. */
interface AskedSession {
  session_id: string;
  user_id: string;
  account_id: string | null;
  expires_at: number;
  now: number;
}

/** The session must exist; the account is null when the user no longer belongs to it (doc1 §5.9 rule 5). */
const SESSION: CredentialLookup<AskedSession, Recognised> = {
  name: 'credential-session',
  takes: { session_id: 'uuid', user_id: 'uuid', account_id: 'uuid', now: 'float8' },
  sql: ({ session_id, user_id, account_id, now }) =>
    `select m.account_id, r.permissions, r.holds_all,
       exists (select 1 from user_admin_roles a where a.user_id = s.user_id and a.role = '${SUPER_ADMIN.key}')
         as super_admin,
       array(select unnest(o.permissions) from user_admin_roles a join admin_roles o on o.key = a.role
             where a.user_id = s.user_id) as admin_permissions,
       ${userPermissionsOf('s.user_id')} as user_permissions
     from sessions s join users u on u.id = s.user_id
     left join account_members m on m.user_id = s.user_id and m.account_id = ${account_id}
     left join account_roles r on r.id = m.role_id
     where s.id = ${session_id} and s.user_id = ${user_id} and s.expires_at > to_timestamp(${now} / 1000.0)
       and not exists (select 1 from revocations v where v.credential_id = s.id::text)`,
  found(row, { session_id, user_id, expires_at }) {
    if (row === undefined) return unauthorized;
    return {
      failure: null,
      caller: {
        kind: 'jwt',
        user_id,
        account_id: row.account_id && internString(row.account_id),
        credential_id: session_id,
        permissions: grantedBy(row as RoleRow),
        admin_permissions: grantedToAdmin(row as AdminRow),
        user_permissions: grantedToUser(row.user_permissions),
        rate_bucket: `user:${user_id}`,
        rate_limit: CONTEXTS.jwt.rate,
        expires_at,
      },
    };
  },
};

/** Input of a key look-up by hash or id; `now` in Unix milliseconds. */
interface AskedKey {
  value: string;
  now: number;
}
type KeyQuestion = CredentialLookup<AskedKey, Recognised>;
const UNREVOKED = 'not exists (select 1 from revocations r where r.credential_id = k.id::text)';

/**
 * The key ends with the owner and their membership (doc1 §5.4 rule 6), and once revoked, whether or not the read model
 * has caught up.
 */
const userApiKeyBy = (by: 'key_hash' | 'id', type: 'text' | 'uuid'): KeyQuestion => ({
  name: `credential-api-key-${by}`,
  takes: { value: type },
  sql: ({ value }) =>
    `select k.id, k.account_id, k.user_id, k.permissions, ${EXPIRES_AT}
     from api_keys k join account_members m on m.account_id = k.account_id and m.user_id = k.user_id
       join users u on u.id = k.user_id
     where k.${by} = ${value} and ${UNREVOKED}`,
  found: (row, { now }) => callerFromKeyRow('user_api_key', row, now, { rate_bucket: `key:${row?.id}` }),
});
const USER_API_KEY = { key_hash: userApiKeyBy('key_hash', 'text'), id: userApiKeyBy('id', 'uuid') };

/** Input of the ws token look-up: its claims; times in Unix milliseconds. */
interface AskedWsToken extends Omit<AskedSession, 'session_id'> {
  jti_hash: string;
}

/** A ws token has the current rights of its minter, a session, key or popout token, and ends with it at the latest. */
const WS_TOKEN: CredentialLookup<AskedWsToken, Recognised> = {
  name: 'credential-ws-token',
  takes: { jti_hash: 'text', user_id: 'uuid', account_id: 'uuid', now: 'float8' },
  sql({ jti_hash, ...of }) {
    const id = 'w.parent_id::uuid';
    const minter = (kind: string, sql: string) => `when '${kind}' then (select to_jsonb(f) from (${sql}) f)`;
    return `select w.parent_kind as kind, w.parent_id as id, case w.parent_kind
        ${minter('session', SESSION.sql({ ...of, session_id: id, expires_at: '' }))}
        ${minter('user_api_key', USER_API_KEY.id.sql({ value: id, now: of.now }))}
        ${minter('popout', POPOUT_TOKEN.id.sql({ value: id, now: of.now }))} end as minter
      from ws_tokens w where w.jti_hash = ${jti_hash}`;
  },
  found(row, asked) {
    if (row === undefined || row.minter === null) return unauthorized;
    const { id: value, minter } = row;
    const { now } = asked;
    const found =
      row.kind === 'session'
        ? SESSION.found(minter, { ...asked, session_id: value })
        : (row.kind === 'popout' ? POPOUT_TOKEN : USER_API_KEY).id.found(minter, { value, now });
    if (found.caller === null) return found;
    const expires_at = Math.min(asked.expires_at, found.caller.expires_at ?? Infinity);
    return { failure: null, caller: { ...found.caller, expires_at } };
  },
};

/** The key belongs to the account, not to a member, so it remains valid when members leave. Source: spec doc1 §5.4. */
const serviceKeyBy = (by: 'key_hash' | 'id', type: 'text' | 'uuid'): KeyQuestion => ({
  name: `credential-service-key-${by}`,
  takes: { value: type },
  sql: ({ value }) =>
    `select k.id, k.account_id, k.permissions, ${EXPIRES_AT}
     from service_keys k join accounts a on a.id = k.account_id where k.${by} = ${value} and ${UNREVOKED}`,
  found: (row, { now }) => callerFromKeyRow('service_key', row, now, { rate_bucket: `key:${row?.id}` }),
});
const SERVICE_KEY = { key_hash: serviceKeyBy('key_hash', 'text'), id: serviceKeyBy('id', 'uuid') };

const systemKeyBy = (by: 'key_hash' | 'id'): CredentialLookup<{ value: string }, Row | undefined> => ({
  name: `credential-system-key-${by}`,
  takes: { value: 'text' },
  sql: ({ value }) => `select id, permissions from system_keys k where k.${by}::text = ${value} and ${UNREVOKED}`,
  found: (row) => row,
});
const SYSTEM_KEY = { key_hash: systemKeyBy('key_hash'), id: systemKeyBy('id') };

const ACCOUNT: CredentialLookup<{ id: string }, string | null> = {
  name: 'credential-account',
  takes: { id: 'uuid' },
  sql: ({ id }) => `select id from accounts where id = ${id}`,
  found: (row) => row?.id ?? null,
};

/** Look-ups of credentials, without a cache. `now` is in Unix milliseconds. Source: spec doc1 §5.3, 5.4, 5.9. */
export class CredentialLookups {
  constructor(
    private readonly ask: LookupRunner,
    private readonly static_keys: ReadonlyMap<string, StaticSystemKey>,
  ) {}

  /** Whether the configuration has a key with this hash. */
  isStatic = (key_hash: string): boolean => this.static_keys.has(key_hash);

  session(
    session_id: string,
    { sub, account_id, exp }: Pick<Claims, 'sub' | 'account_id' | 'exp'>,
    now: number,
  ): Promise<Recognised> {
    return this.ask(SESSION, { session_id, user_id: sub, account_id, expires_at: exp * 1000, now });
  }

  oauthClient = (token: ClientToken): Promise<Recognised> => oauthClientCaller(this.ask, token);

  wsToken = ({ jti, sub, account_id, exp }: Claims, now: number): Promise<Recognised> =>
    this.ask(WS_TOKEN, { jti_hash: hashJti(jti), user_id: sub, account_id, expires_at: exp * 1000, now });

  userApiKey = (by: 'key_hash' | 'id', value: string, now: number) => this.ask(USER_API_KEY[by], { value, now });

  serviceKey = (by: 'key_hash' | 'id', value: string, now: number) => this.ask(SERVICE_KEY[by], { value, now });

  popout = (by: 'token_hash' | 'id', value: string, now: number) => this.ask(POPOUT_TOKEN[by], { value, now });

  popoutSession = (id: string, ends_at: number, now: number) => findPopoutSession(this.ask, id, ends_at, now);

  boundToken = (kind: BoundKind, by: 'token_hash' | 'id', value: string, now: number) =>
    this.ask(BOUND_TOKEN[by], { kind, value, now });

  /**
   * Searches the configuration first, then the admin panel's keys. `account_id` is the account that the request names;
   * an unknown one becomes null.
   */
  async systemKey(key_hash: string, account_id: string | null): Promise<Recognised> {
    const fixed = this.static_keys.get(key_hash);
    const row = fixed
      ? { id: fixed.credential_id, permissions: fixed.grants }
      : await this.ask(SYSTEM_KEY.key_hash, { value: key_hash });
    if (row === undefined) return unauthorized;
    return {
      failure: null,
      caller: {
        kind: 'system_key',
        user_id: null,
        account_id: account_id && (await this.ask(ACCOUNT, { id: account_id })),
        credential_id: row.id,
        permissions: new Set<string>(row.permissions),
        admin_permissions: NO_PERMISSIONS,
        user_permissions: NO_PERMISSIONS,
        rate_bucket: 'system',
        rate_limit: CONTEXTS.system_key.rate,
        expires_at: null,
      },
    };
  }

  /** Current grants of a system key by its id, from the configuration or the admin panel; null when the key is gone. */
  async systemKeyGrants(id: string): Promise<ReadonlySet<string> | null> {
    for (const { credential_id, grants } of this.static_keys.values()) if (credential_id === id) return grants;
    const row = await this.ask(SYSTEM_KEY.id, { value: id });
    return row ? new Set<string>(row.permissions) : null;
  }
}
