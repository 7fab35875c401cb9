import { SUPER_ADMIN } from '../domain/admin-roles';
import type { Database, Row } from '../engines/postgres/port';
import { findBoundToken, type BoundKind } from './bound-tokens';
import { NO_PERMISSIONS, unauthorized, type Recognised } from './caller';
import { CONTEXTS } from './contexts';
import { EXPIRES_AT, foundKey } from './found-keys';
import { oauthClientCaller, type ClientToken } from './oauth-lookups';
import { findPopoutSession, findPopoutToken } from './popout-tokens';
import { grantedBy, grantedToAdmin, type AdminRow, type RoleRow } from './roles';
import { hashJti, type Claims } from './tokens';
import { grantedToUser, userPermissionsOf } from './user-roles';

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

/**
 * The queries behind credentials; nothing is remembered here. `now` is in Unix milliseconds. Source: spec doc1 §5.3,
 * 5.4, 5.9.
 */
export class CredentialLookups {
  constructor(
    private readonly db: Database,
    private readonly static_keys: ReadonlyMap<string, StaticSystemKey>,
  ) {}

  /** Whether configuration has a key of this hash. */
  isStatic = (key_hash: string): boolean => this.static_keys.has(key_hash);

  /** A session must still exist; an account that the user no longer belongs to reads as none (doc1 §5.9 rule 5). */
  async session(
    session_id: string,
    claims: Pick<Claims, 'sub' | 'account_id' | 'exp'>,
    now: number,
  ): Promise<Recognised> {
    const [row] = await this.db.query(
      `select m.account_id, r.permissions, r.holds_all,
         exists (select 1 from user_admin_roles a where a.user_id = s.user_id and a.role = '${SUPER_ADMIN.key}')
           as super_admin,
         array(select unnest(o.permissions) from user_admin_roles a join admin_roles o on o.key = a.role
               where a.user_id = s.user_id) as admin_permissions,
         ${userPermissionsOf('s.user_id')} as user_permissions
       from sessions s join users u on u.id = s.user_id
       left join account_members m on m.user_id = s.user_id and m.account_id = $3
       left join account_roles r on r.id = m.role_id
       where s.id = $1 and s.user_id = $2 and s.expires_at > to_timestamp($4 / 1000.0)
         and not exists (select 1 from revocations v where v.credential_id = s.id::text)`,
      [session_id, claims.sub, claims.account_id, now],
      'credential-session',
    );
    if (row === undefined) return unauthorized;
    return {
      failure: null,
      caller: {
        kind: 'jwt',
        user_id: claims.sub,
        account_id: row.account_id,
        credential_id: session_id,
        permissions: grantedBy(row as RoleRow),
        admin_permissions: grantedToAdmin(row as AdminRow),
        user_permissions: grantedToUser(row.user_permissions),
        rate_bucket: `user:${claims.sub}`,
        rate_limit: CONTEXTS.jwt.rate,
        expires_at: claims.exp * 1000,
      },
    };
  }

  oauthClient = (token: ClientToken): Promise<Recognised> => oauthClientCaller(this.db, token);

  /**
   * A ws token is what minted it, for the time that it has left: a session, or a key with the key's own permissions.
   */
  async wsToken(claims: Claims, now: number): Promise<Recognised> {
    const [row] = await this.db.query(
      'select parent_kind, parent_id from ws_tokens where jti_hash = $1',
      [hashJti(claims.jti)],
      'credential-ws-token',
    );
    if (row === undefined) return unauthorized;
    const found = await this.minter(row.parent_kind, row.parent_id, claims, now);
    if (found.caller === null) return found;
    const expires_at = Math.min(claims.exp * 1000, found.caller.expires_at ?? Infinity);
    return { failure: null, caller: { ...found.caller, expires_at } };
  }

  private async minter(kind: string, id: string, claims: Claims, now: number): Promise<Recognised> {
    if (kind === 'session') return this.session(id, claims, now);
    if (kind === 'user_api_key') return this.userApiKey('id', id, now);
    return kind === 'popout' ? this.popout('id', id, now) : unauthorized;
  }

  /**
   * Stops with the owner's membership (doc1 §5.4 rule 6), and once revoked, whether or not the read model has caught
   * up.
   */
  async userApiKey(by: 'key_hash' | 'id', value: string, now: number): Promise<Recognised> {
    const [row] = await this.db.query(
      `select k.id, k.account_id, k.user_id, k.permissions, ${EXPIRES_AT}
       from api_keys k join account_members m on m.account_id = k.account_id and m.user_id = k.user_id where k.${by} = $1
         and not exists (select 1 from revocations r where r.credential_id = k.id::text)`,
      [value],
      `credential-api-key-${by}`,
    );
    return foundKey('user_api_key', row, now, { rate_bucket: `key:${row?.id}` });
  }

  /** Belongs to the account and to no member: it works on whoever leaves. Source: spec doc1 §5.4. */
  async serviceKey(by: 'key_hash' | 'id', value: string, now: number): Promise<Recognised> {
    const [row] = await this.db.query(
      `select k.id, k.account_id, k.permissions, ${EXPIRES_AT}
       from service_keys k join accounts a on a.id = k.account_id where k.${by} = $1
         and not exists (select 1 from revocations r where r.credential_id = k.id::text)`,
      [value],
      `credential-service-key-${by}`,
    );
    return foundKey('service_key', row, now, { rate_bucket: `key:${row?.id}` });
  }

  popout = (by: 'token_hash' | 'id', value: string, now: number) => findPopoutToken(this.db, by, value, now);

  popoutSession = (id: string, ends_at: number, now: number) => findPopoutSession(this.db, id, ends_at, now);

  boundToken = (kind: BoundKind, by: 'token_hash' | 'id', value: string, now: number) =>
    findBoundToken(this.db, kind, by, value, now);

  /**
   * Configuration first, then the admin panel's keys. `account_id` is the account that the request names; an unknown
   * one reads as none.
   */
  async systemKey(key_hash: string, account_id: string | null): Promise<Recognised> {
    const fixed = this.static_keys.get(key_hash);
    const row: Row | undefined = fixed
      ? { id: fixed.credential_id, permissions: fixed.grants }
      : (
          await this.db.query(
            `select id, permissions from system_keys k where key_hash = $1
               and not exists (select 1 from revocations r where r.credential_id = k.id::text)`,
            [key_hash],
            'credential-system-key',
          )
        )[0];
    if (row === undefined) return unauthorized;
    const [account] = account_id
      ? await this.db.query('select id from accounts where id = $1', [account_id], 'credential-account')
      : [];
    return {
      failure: null,
      caller: {
        kind: 'system_key',
        user_id: null,
        account_id: account?.id ?? null,
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

  /** The grants of a system key by its id, as configuration or the admin panel has them now; null when it is gone. */
  async systemKeyGrants(id: string): Promise<ReadonlySet<string> | null> {
    for (const { credential_id, grants } of this.static_keys.values()) if (credential_id === id) return grants;
    const [row] = await this.db.query(
      `select permissions from system_keys k where id::text = $1
         and not exists (select 1 from revocations r where r.credential_id = k.id::text)`,
      [id],
      'credential-system-key-id',
    );
    return row ? new Set<string>(row.permissions) : null;
  }
}
