import { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { authenticated, get, numbered, permission, publicAccess, query, rowsOf } from '../../app/operation';
import { PopoutToken } from '../../views/credentials/popout-tokens';
import { ACCOUNT_PERMISSIONS, ADMIN_PERMISSIONS, expandGrants } from '../../domain/common/permissions';

/**
 * Effective permissions in the registry's order; a system key's `resource:*` is expanded, so that an answer never has a
 * wildcard (doc1 §5.4).
 */
function effective(caller: Caller) {
  if (caller.kind === 'system_key') {
    return {
      permissions: expandGrants(caller.permissions),
      admin_permissions: expandGrants(caller.permissions, ADMIN_PERMISSIONS),
      user_permissions: [],
    };
  }
  return {
    permissions: ACCOUNT_PERMISSIONS.filter((name) => caller.permissions.has(name)),
    admin_permissions: ADMIN_PERMISSIONS.filter((name) => caller.admin_permissions.has(name)),
    user_permissions: [...caller.user_permissions],
  };
}

const EffectivePermissions = z
  .object({
    permissions: z
      .array(z.string())
      .describe('Account scope: of the active account for a session, its own scope for a key'),
    admin_permissions: z.array(z.string()),
    user_permissions: z.array(z.string()),
  })
  .meta({ id: 'EffectivePermissions' });

/** REST shows all three scopes (spec rulings, "`GET /v1/tokens/me`"). */
export const tokenPermissions = query({
  name: 'tokenPermissions',
  // Source: spec doc1 §5.4.
  summary: "The caller's effective permissions by scope",
  rest: get('/v1/tokens/me'),
  guard: [authenticated],
  input: z.object({}),
  output: EffectivePermissions,
  run: async ({ caller }) => effective(caller),
});

/** GraphQL shows the account scope as a plain list. */
export const myPermissions = query({
  name: 'myPermissions',
  // Source: spec doc2 §4.3.
  summary: "The caller's effective permissions",
  rest: null,
  guard: [authenticated],
  input: z.object({}),
  output: z.array(z.string()),
  run: async ({ caller }) => effective(caller).permissions,
});

/** Revoked ones too, newest first. Source: spec doc2 §2.6. */
export const popoutTokens = query({
  name: 'popoutTokens',
  summary: 'The popout tokens of the active account, revoked ones too, newest first',
  rest: get('/v1/tokens'),
  pages: numbered(),
  guard: [permission('tokens:read')],
  input: z.object({}),
  output: PopoutToken,
  run({ caller, page }, { db }) {
    const from = 'popout_tokens where account_id = $1';
    return rowsOf(db, page, PopoutToken, { from, order: 'created_at desc, id desc', values: [caller.account_id] });
  },
});

const JwkSet = z
  .object({
    keys: z.array(
      z
        .object({ kid: z.string(), kty: z.string(), crv: z.string(), x: z.string(), alg: z.string(), use: z.string() })
        .meta({ id: 'Jwk' }),
    ),
  })
  .meta({ id: 'JwkSet' });

/** Public keys for verifying our JWTs (RFC 7517). Source: spec rulings, "paths left open". */
export const jwks = query({
  name: 'jwks',
  // Source: spec rulings, "paths left open".
  summary: 'Public keys of the tokens that this service signs',
  rest: get('/v1/.well-known/jwks.json', { envelope: 'bare' }),
  guard: [publicAccess],
  input: z.object({}),
  output: JwkSet,
  run: async (_request, { tokens }) => tokens.jwks(),
});
