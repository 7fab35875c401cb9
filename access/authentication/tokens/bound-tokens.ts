import { v7 } from 'uuid';
import type { Queryable } from '../../../engines/postgres/port';
import { NO_PERMISSIONS, type CallerKind, type Recognised } from '../caller';
import { EXPIRES_AT, callerFromKeyRow } from '../key-rows';
import { internSet } from '../memory/intern';
import { generateKey } from '../keys';
import type { CredentialLookup } from '../memory/credential-lookups';
import type { Services } from '../../../app/services';

/** The kinds of tokens that open one overlay, widget or install. Source: spec doc1 §5.6. */
export type BoundKind = Extract<CallerKind, 'overlay' | 'shared_overlay' | 'extension' | 'widget'>;

/** Scope of a token to mint. */
export interface Bound {
  kind: BoundKind;
  account_id: string;
  /** The overlay, widget or install. */
  resource_id: string;
  /** The channel that it opens: `overlay:<key>`, `widget:<widget id>`, `ext-storage:<install id>`. */
  channel: string;
  extension_id?: string | undefined;
  /** Permissions granted to the extension at its install. */
  install_grants?: readonly string[] | undefined;
  /** Unix milliseconds; null is never. */
  expires_at: number | null;
}

export interface MintedToken {
  id: string;
  /** Shown once: only its hash is kept. */
  token: string;
  expires_at: number | null;
}

/** An extension's page requests the next token before this one ends. Source: spec doc1 §5.6. */
const EXTENSION_MS = 15 * 60_000;

/**
 * Mints a token that opens one overlay, widget or install; an extension's token ends after 15 minutes at most.
 * @throws Error for a shared overlay without an end
 */
export async function mintBoundToken({ db }: { db: Queryable }, bound: Bound): Promise<MintedToken> {
  const { kind, account_id, resource_id, channel, extension_id, install_grants } = bound;
  const most = kind === 'extension' ? Date.now() + EXTENSION_MS : null;
  const expires_at =
    bound.expires_at === null || most === null ? (bound.expires_at ?? most) : Math.min(bound.expires_at, most);
  if (kind === 'shared_overlay' && expires_at === null) throw new Error('a shared overlay is shared until some time');
  const id = v7();
  const { key, hash } = generateKey(kind);
  await db.query(
    `insert into bound_tokens
       (id, kind, token_hash, account_id, resource_id, channel, extension_id, install_grants, expires_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, to_timestamp($9 / 1000.0))`,
    [id, kind, hash, account_id, resource_id, channel, extension_id ?? null, install_grants ?? [], expires_at],
  );
  return { id, token: key, expires_at };
}

/**
 * Revokes tokens of an account: one by its id, those of one resource, or all; every node closes their sockets. Returns
 * the number revoked.
 */
export async function revokeBoundTokens(
  // Without `access` no node of this process has anything to forget.
  { db, access }: { db: Queryable; access?: Services['access'] },
  {
    account_id,
    resource_id,
    id,
    kind,
  }: { account_id: string; resource_id?: string; id?: string; kind?: BoundKind | undefined },
): Promise<number> {
  const ended = await db.query<{ credential_id: string }>(
    `with ended as (
       delete from bound_tokens where account_id = $1
         and ($2::uuid is null or resource_id = $2) and ($3::uuid is null or id = $3)
         and ($4::text is null or kind = $4) returning id)
     insert into revocations (credential_id) select id::text from ended returning credential_id`,
    [account_id, resource_id ?? null, id ?? null, kind ?? null],
  );
  for (const { credential_id } of ended) await access?.announce({ credential_id });
  return ended.length;
}

/** Look-up of a token by kind; unauthorised once it was revoked or its account is gone. `now` in Unix milliseconds. */
const tokenBy = (by: 'token_hash' | 'id', type: 'text' | 'uuid'): CredentialLookup<AskedToken, Recognised> => ({
  name: `credential-bound-token-${by}`,
  takes: { value: type, kind: 'text' },
  sql: ({ value, kind }) =>
    `select t.id, t.token_hash, t.account_id, t.channel, t.install_grants, ${EXPIRES_AT}
     from (select id, token_hash, kind, account_id, channel, install_grants, expires_at from bound_tokens
       union all select id, token_hash, kind, account_id, channel, install_grants, expires_at from overlay_tokens
       union all select id, token_hash, kind, account_id, channel, install_grants, expires_at from widget_tokens) t
       join accounts a on a.id = t.account_id where t.${by} = ${value} and t.kind = ${kind}`,
  found: (row, { kind, now }) =>
    callerFromKeyRow(kind, row, now, {
      permissions: NO_PERMISSIONS,
      bound_channel: row?.channel,
      install_grants: internSet(row?.install_grants ?? []),
      rate_bucket: `token:${row?.token_hash}`,
    }),
});
export const BOUND_TOKEN = { token_hash: tokenBy('token_hash', 'text'), id: tokenBy('id', 'uuid') };

interface AskedToken {
  value: string;
  kind: BoundKind;
  now: number;
}
