import { isUuid } from '../../lib/hash/uuid';
import type { BoundKind } from './tokens/bound-tokens';
import { unauthorized, type Caller, type CallerKind, type Recognised } from './caller';
import type { CredentialLookups } from './lookups';
import type { Claims } from './tokens/jwt';

/**
 * Transport of a token: `Authorization`, `?token=` of any request, or `?token=` of the WebSocket upgrade alone.
 * Long-lived keys are accepted by header only. Source: spec doc1 §5.2, ruling c25.
 */
export type Transport = 'header' | 'query' | 'upgrade_query';

/** A token with a known prefix, and the parts of its request that its look-up reads. */
export interface PresentedToken {
  token: string;
  /** Hex SHA-256 of the token. */
  hash: string;
  on_upgrade: boolean;
  /** `X-Lumio-Account` as received. */
  account_header: string | undefined;
  /** Unix milliseconds. */
  now: number;
}

/** Dependencies of {@link CredentialContext.find}. */
export interface CredentialResolvers {
  lookups: CredentialLookups;
  /** Verifies each token's signature once. */
  claims(presented: PresentedToken): Promise<Claims | Recognised>;
}

/** A look-up that requests share; its result is cached under `key` for less than a second. */
export interface SharedLookup {
  key: string;
  load(): Promise<Recognised>;
}

type LookupResult = SharedLookup | Recognised;

/** Context that a request resolves to, one of ten. Source: spec doc1 §5.1 to 5.9. */
export interface CredentialContext {
  /** Prefix of its tokens; null without tokens. */
  readonly prefix: string | null;
  /** Length of a token in characters; null where it varies. */
  readonly length: number | null;
  readonly transports: readonly Transport[];
  /** Units a minute, independent of the plan; null is unlimited. */
  readonly rate: number | null;
  /** WebSockets that one caller may have open at a time; null is unlimited. Source: rulings, "sockets per caller". */
  readonly sockets: number | null;
  /** Whether it can hold permissions; one that cannot reaches only public operations and its own channel. */
  readonly rbac: boolean;
  /** Whether it is the person themselves. Source: spec doc1 §5.8. */
  readonly first_party: boolean;
  /** Whether its owner sees the time of its last use. */
  readonly shows_use?: true;
  /** Finds the caller of a token. Absent for a kind that is never issued: its tokens are refused. */
  readonly find?: (presented: PresentedToken, using: CredentialResolvers) => LookupResult | Promise<LookupResult>;
  /** Current rights of an open socket's credential. Absent for a kind that is never issued: its tokens are refused. */
  readonly revalidate?: (caller: Caller, now: number, lookups: CredentialLookups) => Promise<Recognised>;
}

/** A context whose tokens are 32 random bytes in hex behind a prefix. */
interface KeyContext extends CredentialContext {
  readonly prefix: string;
  readonly length: number;
}

const SECRET_HEX = 64;
const key = (prefix: string, rest: Omit<KeyContext, 'prefix' | 'length'>): KeyContext => ({
  prefix,
  length: prefix.length + SECRET_HEX,
  ...rest,
});

/** Sockets of a caller with a credential. */
const SOCKETS = 100;
const HEADER = ['header'] as const;
const ANYWHERE = ['header', 'query'] as const;
/**
 * Context of tokens for one overlay, widget or install; they open its own channel or storage. Source: spec doc1 §5.6.
 */
const browserSource = (kind: BoundKind, prefix: string): KeyContext =>
  key(prefix, {
    transports: ANYWHERE,
    rate: 600,
    sockets: SOCKETS,
    rbac: false,
    first_party: false,
    find: ({ hash, now }, { lookups }) => ({
      key: hash,
      load: () => lookups.boundToken(kind, 'token_hash', hash, now),
    }),
    revalidate: (caller, now, lookups) => lookups.boundToken(kind, 'id', caller.credential_id!, now),
  });

/** All contexts: form of the token, transports, limits and look-up. */
export const CONTEXTS = {
  system_key: key('lm_sys_', {
    transports: HEADER,
    rate: null,
    sockets: null,
    rbac: true,
    first_party: false,
    shows_use: true,
    find({ hash, account_header }, { lookups }) {
      const account = account_header !== undefined && isUuid(account_header) ? account_header.toLowerCase() : null;
      return { key: `${hash} ${account}`, load: () => lookups.systemKey(hash, account) };
    },
    async revalidate(caller, _now, lookups) {
      const permissions = await lookups.systemKeyGrants(caller.credential_id!);
      return permissions === null ? unauthorized : { caller: { ...caller, permissions }, failure: null };
    },
  }),
  user_api_key: key('lm_usr_', {
    transports: HEADER,
    rate: 1200,
    sockets: SOCKETS,
    rbac: true,
    first_party: true,
    shows_use: true,
    find: ({ hash, now }, { lookups }) => ({ key: hash, load: () => lookups.userApiKey('key_hash', hash, now) }),
    revalidate: (caller, now, lookups) => lookups.userApiKey('id', caller.credential_id!, now),
  }),
  service_key: key('lm_svc_', {
    transports: HEADER,
    rate: 1200,
    sockets: SOCKETS,
    rbac: true,
    first_party: false,
    shows_use: true,
    find: ({ hash, now }, { lookups }) => ({ key: hash, load: () => lookups.serviceKey('key_hash', hash, now) }),
    revalidate: (caller, now, lookups) => lookups.serviceKey('id', caller.credential_id!, now),
  }),
  jwt: {
    prefix: 'lm_eyJ',
    length: null,
    transports: ['header', 'upgrade_query'],
    rate: 600,
    sockets: SOCKETS,
    rbac: true,
    first_party: true,
    async find(presented, { lookups, claims: claimsOf }) {
      const claims = await claimsOf(presented);
      if ('failure' in claims) return claims;
      const { session_id, popout_id, client, use } = claims;
      const { hash: key, now } = presented;
      if (client) {
        const token = { client, expires_at: claims.exp * 1000, now };
        return use === 'access' ? { key, load: () => lookups.oauthClient(token) } : unauthorized;
      }
      if (use === 'access' && popout_id) return lookups.popoutSession(popout_id, claims.exp * 1000, now);
      if (use === 'access' && session_id !== null) return { key, load: () => lookups.session(session_id, claims, now) };
      if (use === 'ws' && presented.on_upgrade) return { key, load: () => lookups.wsToken(claims, now) };
      return unauthorized;
    },
    revalidate: (caller, now, lookups) => {
      const { user_id, account_id, expires_at, client } = caller;
      if (client) return lookups.oauthClient({ client, expires_at, now });
      const claims = { sub: user_id ?? '', account_id, exp: (expires_at ?? 0) / 1000 };
      return lookups.session(caller.credential_id!, claims, now);
    },
  },
  popout: key('lm_pop_', {
    transports: ANYWHERE,
    rate: 600,
    sockets: SOCKETS,
    rbac: true,
    first_party: false,
    // Never cached: each request checks for a revocation. Source: spec doc1 §5.5 rule 4.
    find: ({ hash, now }, { lookups }) => lookups.popout('token_hash', hash, now),
    revalidate: (caller, now, lookups) => lookups.popout('id', caller.credential_id!, now),
  }),
  overlay: browserSource('overlay', 'lm_overlay_'),
  shared_overlay: browserSource('shared_overlay', 'lm_share_'),
  extension: browserSource('extension', 'lm_ext_'),
  widget: browserSource('widget', 'lm_widget_'),
  anonymous: { prefix: null, length: null, transports: [], rate: 120, sockets: 20, rbac: false, first_party: false },
} as const satisfies Record<CallerKind, CredentialContext>;

/** Kinds whose tokens are keys. */
export type KeyKind = {
  [Kind in CallerKind]: (typeof CONTEXTS)[Kind] extends KeyContext ? Kind : never;
}[CallerKind];

/** Whether its tokens are keys. */
export const isKey = (kind: CallerKind): kind is KeyKind => contextOf(kind).length !== null;

export const contextOf = (kind: CallerKind): CredentialContext => CONTEXTS[kind];

const PREFIXES = (Object.entries(CONTEXTS) as [CallerKind, CredentialContext][]).flatMap(([kind, { prefix }]) =>
  prefix === null ? [] : [{ kind, prefix }],
);

/** Kind of a token by its prefix; null for an unknown prefix. */
export function tokenKind(token: string): CallerKind | null {
  return PREFIXES.find(({ prefix }) => token.startsWith(prefix))?.kind ?? null;
}

/** False for a key of the wrong length or with wrong characters, which needs no look-up. */
export function wellFormed(kind: CallerKind, token: string): boolean {
  const { prefix, length } = contextOf(kind);
  return length === null || (token.length === length && /^[0-9a-f]*$/.test(token.slice(prefix!.length)));
}
