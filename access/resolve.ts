import { LRUCache } from 'lru-cache';
import type { Database } from '../engines/postgres/port';
import type { Logger } from '../engines/log/port';
import { ApiError } from '../kernel/errors';
import type { Caller } from './caller';
import type { Counts } from './counts';
import { KeySieve } from './key-sieve';
import { hashToken, QUERY_KINDS, tokenKind, wellFormedKey, type KeyKind } from './keys';
import { LastUses } from './last-uses';
import { CredentialLookups, expired, parseSystemKeys, unauthorized, type Looked } from './lookups';
import { failureBucket, networkOf, RATE_LIMITS } from './rate-buckets';
import type { Revocation } from './revocations';
import type { Claims, Tokens } from './tokens';

/** What a request brings to say who it is from; strings as received. */
export interface Credentials {
  authorization: string | undefined;
  /** `?token=`. */
  query_token: string | undefined;
  /** The `Cookie` header; read for a popout session when there is no `Authorization` (ruling c20). */
  cookie: string | undefined;
  /** True only on the WebSocket upgrade: JWTs in the URL and ws tokens count there alone. */
  on_upgrade: boolean;
  /** `X-Lumio-Account`; says which account a system key acts on, and nothing for others. */
  account_header: string | undefined;
  ip: string;
  /** Unix milliseconds. */
  now: number;
}

/**
 * `failure` says why a credential that was presented did not count: REST and GraphQL go on as Anonymous, counted with
 * the failures of its network and not with its anonymous requests; the upgrade answers 401.
 */
export interface Resolution {
  caller: Caller;
  failure: null | 'TOKEN_EXPIRED' | 'UNAUTHORIZED';
}

export interface CallerResolver {
  /**
   * A credential that was not right before holds a unit of its network's failures while it is looked at. Past their
   * limit made-up ones are told apart without a look-up each, and right ones go on working. Source: spec doc1 §5.1–5.3,
   * 5.9.
   * @throws ApiError RATE_LIMIT_EXCEEDED for one that is not right, past the limit; else rejects only when the database
   * cannot say
   */
  resolve(credentials: Credentials): Promise<Resolution>;
  /** What the credential of an open socket grants now, as the database has it; rejects when it cannot say. */
  again(caller: Caller, now: number): Promise<Looked>;
  /** Forgets at once what is remembered about these; the next request asks the database. */
  forget(revocation: Partial<Revocation>): void;
  /** Writes the last uses that are still in memory. */
  close(): Promise<void>;
}

/** Below the second that a revocation may take on another node. */
const REMEMBER_MS = 900;
const REMEMBERED = 20_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

type Presented = { kind: KeyKind | 'jwt'; token: string };

/**
 * Makes the resolver. A credential is looked up at most once per 0.9 s, several requests at a time share one lookup, and a signature is
 * checked once per token: a revocation made elsewhere holds within a second, one told through `forget` at the next request.
 */
export function createCallerResolver(deps: {
  db: Database;
  tokens: Tokens;
  log: Logger;
  counts: Counts;
  /** `auth.system_keys` of the settings. */
  system_keys: readonly string[];
}): CallerResolver {
  const { tokens, counts } = deps;
  const static_keys = parseSystemKeys(deps.system_keys);
  const lookups = new CredentialLookups(deps.db, static_keys);
  const sieve = new KeySieve(deps.db);
  const uses = new LastUses(deps.db, deps.log);
  const remembered = new LRUCache<string, { looked: Looked; at: number }>({ max: REMEMBERED });
  // Apart and small: made-up tokens must not push out those that are right.
  const refused = new LRUCache<string, { looked: Looked; at: number }>({ max: 1000 });
  const loading = new Map<string, Promise<Looked>>();
  const verified = new LRUCache<string, Claims>({ max: REMEMBERED });
  /** Hashes of tokens that were right when they were last looked at. */
  const proven = new LRUCache<string, true>({ max: REMEMBERED });
  /** Raised by `forget`: a lookup that began before it is not remembered. */
  let generation = 0;

  function once(key: string, load: () => Promise<Looked>): Looked | Promise<Looked> {
    const at = performance.now();
    const known = remembered.get(key) ?? refused.get(key);
    if (known && at - known.at < REMEMBER_MS) return known.looked;
    const under_way = loading.get(key);
    if (under_way) return under_way;
    const began_in = generation;
    const started: Promise<Looked> = load().then(
      (looked) => {
        if (began_in === generation) {
          if (looked.caller === null) remembered.delete(key);
          else refused.delete(key);
          (looked.caller === null ? refused : remembered).set(key, { looked, at });
        }
        if (loading.get(key) === started) loading.delete(key);
        return looked;
      },
      (error: unknown) => {
        if (loading.get(key) === started) loading.delete(key);
        throw error;
      },
    );
    loading.set(key, started);
    return started;
  }

  async function claimsOf(hash: string, token: string, now: number): Promise<Claims | Looked> {
    const known = verified.get(hash);
    if (known) return known.exp * 1000 > now ? known : expired;
    const { claims, failure } = await tokens.verify(token, now);
    if (failure === 'expired') return expired;
    if (claims === null) return unauthorized;
    verified.set(hash, claims);
    return claims;
  }

  async function jwt(hash: string, token: string, on_upgrade: boolean, now: number): Promise<Looked> {
    const claims = await claimsOf(hash, token, now);
    if ('failure' in claims) return claims;
    const { session_id } = claims;
    switch (claims.use) {
      case 'access':
        return session_id === null ? unauthorized : once(hash, () => lookups.session(session_id, claims, now));
      case 'ws':
        return on_upgrade ? once(hash, () => lookups.wsToken(claims, now)) : unauthorized;
      default:
        return unauthorized;
    }
  }

  /** `wary`: past the limit of its network's failures, where only what is sure to exist is looked up. */
  async function look({ kind, token }: Presented, hash: string, wary: boolean, asked: Credentials): Promise<Looked> {
    const { on_upgrade, account_header, now } = asked;
    if (kind === 'jwt') return jwt(hash, token, on_upgrade, now);
    if (!wellFormedKey(kind, token)) return unauthorized;
    switch (kind) {
      case 'user_api_key':
        if (wary && !(await sieve.exists(hash))) return unauthorized;
        return once(hash, () => lookups.userApiKey('key_hash', hash, now));
      case 'system_key': {
        if (wary && !static_keys.has(hash) && !(await sieve.exists(hash))) return unauthorized;
        const account = account_header !== undefined && UUID.test(account_header) ? account_header.toLowerCase() : null;
        return once(`${hash} ${account}`, () => lookups.systemKey(hash, account));
      }
      default:
        // No token of these kinds has ever been issued, so none can be right.
        return unauthorized;
    }
  }

  /**
   * The unit is held before the look-up, so that many at once cannot all be looked up; whoever answers a failure counts
   * it.
   */
  async function lookFirst(presented: Presented, hash: string, credentials: Credentials): Promise<Looked> {
    const bucket = failureBucket(credentials.ip);
    const wait = await counts.wait(bucket);
    const looked = await look(presented, hash, wait !== null, credentials).catch((error: unknown) => {
      counts.giveBack(bucket);
      throw error;
    });
    if (wait !== null && looked.caller === null) {
      throw new ApiError('RATE_LIMIT_EXCEEDED', 'Rate limit exceeded', { retry_after_seconds: wait });
    }
    counts.giveBack(bucket);
    return looked;
  }

  return {
    async resolve(credentials) {
      const { presented, failure } = choose(credentials);
      const { ip } = credentials;
      if (presented === null) return { caller: failure === null ? anonymous(ip) : failed(ip), failure };
      const hash = hashToken(presented.token);
      const looked = proven.has(hash)
        ? await look(presented, hash, false, credentials)
        : await lookFirst(presented, hash, credentials);
      if (looked.caller === null) {
        proven.delete(hash);
        return { caller: failed(ip), failure: looked.failure };
      }
      proven.set(hash, true);
      const { caller } = looked;
      // It may have ended since it was looked up.
      if (caller.expires_at !== null && caller.expires_at <= credentials.now) {
        return { caller: failed(ip), failure: 'TOKEN_EXPIRED' };
      }
      if (caller.kind !== 'jwt' && caller.credential_id !== null) uses.touch(caller.credential_id, credentials.now);
      return { caller, failure: null };
    },

    again: (caller, now) => lookups.again(caller, now),

    forget({ credential_id, user_id, account_id }) {
      generation += 1;
      loading.clear();
      refused.clear();
      for (const [key, { looked }] of remembered.entries()) {
        const { caller } = looked;
        if (caller === null) continue;
        const named =
          (credential_id && caller.credential_id === credential_id) ||
          (user_id && caller.user_id === user_id) ||
          (account_id && !user_id && caller.account_id === account_id);
        if (named) remembered.delete(key);
      }
    },

    close: () => uses.close(),
  };
}

/** Which of the presented credentials counts. A header with a recognised prefix is final. Source: spec doc1 §5.1 rules 3–4, §5.2. */
export function choose(credentials: Pick<Credentials, 'authorization' | 'query_token' | 'on_upgrade'>): {
  presented: Presented | null;
  failure: Resolution['failure'];
} {
  const { authorization, query_token, on_upgrade } = credentials;
  const token = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  const kind = token === undefined ? null : tokenKind(token);
  if (token !== undefined && kind !== null) return { presented: { kind, token }, failure: null };
  if (query_token !== undefined && query_token !== '') {
    const query_kind = tokenKind(query_token);
    if (query_kind === 'jwt' ? on_upgrade : query_kind !== null && QUERY_KINDS.has(query_kind)) {
      return { presented: { kind: query_kind!, token: query_token }, failure: null };
    }
    return { presented: null, failure: 'UNAUTHORIZED' };
  }
  return { presented: null, failure: authorization === undefined ? null : 'UNAUTHORIZED' };
}

const NONE: ReadonlySet<string> = new Set();

/** The anonymous caller that presented a credential which does not count. */
const failed = (ip: string): Caller => ({ ...anonymous(ip), ...failureBucket(ip) });

/** The caller without a credential. */
export function anonymous(ip: string): Caller {
  return {
    kind: 'anonymous',
    user_id: null,
    account_id: null,
    credential_id: null,
    permissions: NONE,
    admin_permissions: NONE,
    user_permissions: NONE,
    rate_bucket: `ip:${networkOf(ip)}`,
    rate_limit: RATE_LIMITS.anonymous,
    expires_at: null,
  };
}
