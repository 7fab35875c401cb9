import { NO_PERMISSIONS, unauthorized, type Caller, type Recognised } from './caller';
import { CONTEXTS } from './contexts';
import { internSet } from './memory/intern';
import type { ClientClaims } from './tokens/oauth-claims';
import type { LookupRunner, CredentialLookup } from './memory/credential-lookups';
import { grantedBy, type RoleRow } from '../authorization/role-grants';

/** SQL: not revoked, even when the read model is behind. */
const alive = (id: string) => `not exists (select 1 from revocations v where v.credential_id = ${id}::text)`;

/** A client's token; its look-ups are not cached. `now` and `expires_at` in Unix milliseconds. */
export interface ClientToken {
  client: ClientClaims;
  expires_at: number | null;
  now: number;
}

/**
 * Caller of a client's token. For a user: valid while the session of the agreement lasts, with at most the user's own
 * permissions. For its own account: with the registered scopes. Never first party and never an administrator. Source:
 * spec rulings, "OAuth clients".
 */
export function oauthClientCaller(ask: LookupRunner, token: ClientToken): Promise<Recognised> {
  const { client_id, grant_id } = token.client;
  return grant_id === null
    ? ask(FOR_ACCOUNT, { ...token, client_id })
    : ask(FOR_USER, { ...token, client_id, grant_id });
}

const FOR_USER: CredentialLookup<ClientToken & { client_id: string; grant_id: string }, Recognised> = {
  name: 'credential-oauth-grant',
  takes: { grant_id: 'uuid', client_id: 'uuid', now: 'float8' },
  sql: ({ grant_id, client_id, now }) =>
    `select g.user_id, g.session_id, g.scopes, c.scopes as registered, m.account_id, r.permissions, r.holds_all
     from oauth_grants g join oauth_clients c on c.client_id = g.client_id
     join sessions s on s.id = g.session_id and s.user_id = g.user_id join users u on u.id = g.user_id
     left join account_members m on m.user_id = g.user_id and m.account_id = g.account_id
     left join account_roles r on r.id = m.role_id
     where g.id = ${grant_id} and g.client_id = ${client_id} and g.expires_at > to_timestamp(${now} / 1000.0)
       and s.expires_at > to_timestamp(${now} / 1000.0)
       and ${alive('c.client_id')} and ${alive('s.id')} and ${alive('g.id')}`,
  found(row, { client, expires_at, grant_id }) {
    if (row === undefined) return unauthorized;
    return recognised(client, {
      user_id: row.user_id,
      account_id: row.account_id,
      credential_id: grant_id,
      permissions: intersectScopes(client, grantedBy(row as RoleRow), new Set(row.scopes), new Set(row.registered)),
      rate_bucket: `user:${row.user_id}`,
      expires_at,
      ends_with: [row.session_id, client.client_id],
    });
  },
};

const FOR_ACCOUNT: CredentialLookup<ClientToken & { client_id: string }, Recognised> = {
  name: 'credential-oauth-client',
  takes: { client_id: 'uuid' },
  sql: ({ client_id }) =>
    `select c.scopes, a.id as account_id from oauth_clients c join accounts a on a.id = c.account_id
     where c.client_id = ${client_id} and ${alive('c.client_id')}`,
  found(row, { client, expires_at }) {
    if (row === undefined) return unauthorized;
    return recognised(client, {
      user_id: null,
      account_id: row.account_id,
      credential_id: client.client_id,
      permissions: intersectScopes(client, new Set(row.scopes)),
      rate_bucket: `client:${client.client_id}`,
      expires_at,
      ends_with: [],
    });
  },
};

const intersectScopes = ({ scopes }: ClientClaims, ...held: ReadonlySet<string>[]): ReadonlySet<string> =>
  internSet(scopes.filter((name) => held.every((one) => one.has(name))));

type OAuthCaller = Pick<
  Caller,
  'user_id' | 'account_id' | 'credential_id' | 'permissions' | 'rate_bucket' | 'expires_at'
>;

const recognised = (client: ClientClaims, found: OAuthCaller & { ends_with: readonly string[] }): Recognised => ({
  failure: null,
  caller: {
    kind: 'jwt',
    client,
    admin_permissions: NO_PERMISSIONS,
    user_permissions: NO_PERMISSIONS,
    rate_limit: CONTEXTS.jwt.rate,
    ...found,
  },
});
