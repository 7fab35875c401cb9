import { LRUCache } from 'lru-cache';
import type { Database } from '../../engines/postgres/port';
import type { Logger } from '../../engines/log/port';
import { ApiError } from '../../kernel/errors';
import { expired, NO_PERMISSIONS, unauthorized, type Caller, type CallerKind, type Recognised } from './caller';
import {
  CONTEXTS,
  contextOf,
  isKey,
  tokenKind,
  wellFormed,
  type CredentialResolvers,
  type PresentedToken,
  type SharedLookup,
} from './contexts';
import type { RateLimiter } from '../limits/rate-limiter';
import { CredentialMemory } from './memory/credential-memory';
import { KeyExistenceBatch } from './memory/key-existence';
import { hashToken } from './keys';
import { LastUses } from './last-uses';
import { CredentialLookups, parseSystemKeys } from './lookups';
import { RecentlyValidTokens } from './memory/recently-valid-tokens';
import { runSingle, batchLookups } from './memory/credential-lookups';
import { failureBucket, networkOf } from '../limits/rate-buckets';
import { concernsAll, type Revocation } from './revocations';
import type { Claims, Tokens } from './tokens/jwt';

/** Credentials of a request; strings as received. */
export interface Credentials {
  authorization: string | undefined;
  /** `?token=`. */
  query_token: string | undefined;
  /** The session in a popout page's cookie; counts where no `Authorization` came. Source: spec rulings, c20. */
  popout_cookie?: string | undefined;
  /** True only on the WebSocket upgrade, which accepts further kinds of tokens. */
  on_upgrade: boolean;
  /** `X-Lumio-Account`: the account that a system key acts on; ignored for others. */
  account_header: string | undefined;
  ip: string;
  /** Unix milliseconds. */
  now: number;
}

/**
 * `failure`: why a presented credential was refused. REST and GraphQL continue as Anonymous, counted as a failure of
 * the network and not as its anonymous request; the upgrade answers 401.
 */
export interface Resolution {
  caller: Caller;
  failure: null | 'TOKEN_EXPIRED' | 'UNAUTHORIZED';
}

export interface CallerResolver {
  /**
   * Resolves the caller of a request. A credential without an earlier success holds a unit of its network's failures
   * during its look-up. Past that limit keys are checked for existence in batches, and valid ones still pass. Returns a
   * promise only when a look-up is needed. Source: spec doc1 §5.1–5.3, 5.9.
   * @throws ApiError RATE_LIMIT_EXCEEDED for a refused credential past the limit; otherwise rejects only when the
   * database fails
   */
  resolve(credentials: Credentials): Promise<Resolution> | Resolution;
  /**
   * Current rights of an open socket's credential, from the database; rejects when the database fails. Calls in one
   * turn of the event loop cost one statement per 500.
   */
  revalidate(caller: Caller, now: number): Promise<Recognised>;
  /** Drops the cached results that a revocation concerns; the next request queries the database. */
  forget(revocation: Partial<Revocation>): void;
  /** Writes the last uses that are still in memory. */
  close(): Promise<void>;
}

/** Maximum of tokens whose verified claims are cached. */
const REMEMBERED = 20_000;

/** A token with an accepted form and transport. */
interface Presented {
  kind: CallerKind;
  token: string;
  /** Set for the popout cookie, which only a popout session may use; a user's token in it is refused. */
  cookie?: true;
}

/**
 * Creates the resolver. A credential is looked up at most once per 0.9 s, concurrent requests share one look-up, and a
 * signature is checked once per token: a revocation on another node takes effect within a second, one passed to
 * `forget` at the next request.
 */
export function createCallerResolver(deps: {
  db: Database;
  tokens: Tokens;
  log: Logger;
  counts: RateLimiter;
  /** `auth.system_keys` of the settings. */
  system_keys: readonly string[];
}): CallerResolver {
  const { tokens, counts } = deps;
  const fixed = parseSystemKeys(deps.system_keys);
  const lookups = new CredentialLookups(runSingle(deps.db), fixed);
  /** For sockets, whose look-ups come in bursts. */
  const together = new CredentialLookups(batchLookups(deps.db), fixed);
  const memory = new CredentialMemory();
  const sieve = new KeyExistenceBatch(deps.db);
  const uses = new LastUses(deps.db, deps.log);
  const verified = new LRUCache<string, Claims>({ max: REMEMBERED });
  /** Raised when signing keys may have ended: claims verified before are not cached. */
  let generation = 0;
  const proven = new RecentlyValidTokens();

  async function claims({ hash, token, now }: PresentedToken): Promise<Claims | Recognised> {
    const known = verified.get(hash);
    const began = generation;
    if (known) return known.exp * 1000 > now ? known : expired;
    const { claims, failure } = await tokens.verify(token, now);
    if (failure === 'expired') return expired;
    if (claims === null) return unauthorized;
    if (began === generation) verified.set(hash, claims);
    return claims;
  }
  const finders: CredentialResolvers = { lookups, claims };
  const upgrading: CredentialResolvers = { lookups: together, claims };
  const recalled = (found: SharedLookup | Recognised) => ('load' in found ? memory.recall(found) : found);

  /** Returns a promise only when a look-up is needed. */
  function look({ kind, token }: Presented, hash: string, asked: Credentials): Recognised | Promise<Recognised> {
    const { find } = contextOf(kind);
    if (find === undefined || !wellFormed(kind, token)) return unauthorized;
    const { on_upgrade, account_header, now } = asked;
    const presented: PresentedToken = { token, hash, on_upgrade, account_header, now };
    const found = find(presented, on_upgrade ? upgrading : finders);
    return found instanceof Promise ? found.then(recalled) : recalled(found);
  }

  /**
   * Looks up a credential past the network's failure limit: keys only after a batched check that they exist; tokens
   * with a signature directly.
   */
  async function lookWarily(presented: Presented, hash: string, asked: Credentials): Promise<Recognised> {
    const { kind, token } = presented;
    const sure = !isKey(kind) || lookups.isStatic(hash) || !wellFormed(kind, token) || (await sieve.exists(hash));
    return sure ? look(presented, hash, asked) : unauthorized;
  }

  /**
   * Holds the failure unit before the look-up, so that concurrent attempts are limited too, and returns it afterwards:
   * the responder charges a failure.
   */
  async function lookFirst(presented: Presented, hash: string, credentials: Credentials): Promise<Recognised> {
    const bucket = failureBucket(credentials.ip);
    const wait = await counts.wait(bucket);
    let found: Recognised;
    try {
      found = await (wait === null ? look(presented, hash, credentials) : lookWarily(presented, hash, credentials));
    } catch (error) {
      counts.giveBack(bucket);
      throw error;
    }
    if (wait !== null && found.caller === null) {
      throw new ApiError('RATE_LIMIT_EXCEEDED', 'Rate limit exceeded', { retry_after_seconds: wait });
    }
    counts.giveBack(bucket);
    return found;
  }

  /** Resolution of a look-up's result for this transport; records whether the token was valid. */
  function judged(found: Recognised, { cookie }: Presented, hash: string, known: boolean, asked: Credentials) {
    const { ip, now } = asked;
    const nobody = (failure: Resolution['failure']): Resolution => ({ caller: failed(ip), failure });
    if (found.caller !== null && cookie && found.caller.kind !== 'popout') return nobody('UNAUTHORIZED');
    if (found.caller === null) {
      proven.delete(hash);
      return nobody(found.failure);
    }
    if (!known) proven.add(hash);
    const { caller } = found;
    // The credential may have expired since its look-up.
    if (caller.expires_at !== null && caller.expires_at <= now) return nobody('TOKEN_EXPIRED');
    if (contextOf(caller.kind).shows_use && caller.credential_id !== null) uses.touch(caller.credential_id, now);
    return { caller, failure: null };
  }

  return {
    resolve(credentials) {
      const { presented, failure } = choose(credentials);
      const { ip } = credentials;
      if (presented === null) return { caller: failure === null ? anonymous(ip) : failed(ip), failure };
      const hash = hashToken(presented.token);
      const known = proven.has(hash);
      const found = known ? look(presented, hash, credentials) : lookFirst(presented, hash, credentials);
      return found instanceof Promise
        ? found.then((one) => judged(one, presented, hash, known, credentials))
        : judged(found, presented, hash, known, credentials);
    },

    async revalidate(caller, now) {
      // An anonymous caller has no credential that could end.
      if (caller.credential_id === null) return { caller, failure: null };
      return (await contextOf(caller.kind).revalidate?.(caller, now, together)) ?? unauthorized;
    },

    forget(revocation) {
      memory.forget(revocation);
      if (!concernsAll(revocation)) return;
      generation += 1;
      tokens.forget();
      verified.clear();
    },

    close: () => uses.close(),
  };
}

/**
 * Selects the credential that counts. A header with a known prefix is final. Source: spec doc1 §5.1 rules 3–4, §5.2.
 */
export function choose(
  credentials: Pick<Credentials, 'authorization' | 'query_token' | 'popout_cookie' | 'on_upgrade'>,
): {
  presented: Presented | null;
  failure: Resolution['failure'];
} {
  const { authorization, query_token, popout_cookie, on_upgrade } = credentials;
  const token = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  const kind = token === undefined ? null : tokenKind(token);
  if (token !== undefined && kind !== null) return { presented: { kind, token }, failure: null };
  if (query_token !== undefined && query_token !== '') {
    const query_kind = tokenKind(query_token);
    const { transports } = contextOf(query_kind ?? 'anonymous');
    if (
      query_kind === null ||
      !(transports.includes('query') || (on_upgrade && transports.includes('upgrade_query')))
    ) {
      return { presented: null, failure: 'UNAUTHORIZED' };
    }
    return { presented: { kind: query_kind, token: query_token }, failure: null };
  }
  if (authorization !== undefined) return { presented: null, failure: 'UNAUTHORIZED' };
  if (popout_cookie === undefined) return { presented: null, failure: null };
  if (tokenKind(popout_cookie) !== 'jwt') return { presented: null, failure: 'UNAUTHORIZED' };
  return { presented: { kind: 'jwt', token: popout_cookie, cookie: true }, failure: null };
}

/** Anonymous caller after a refused credential. */
const failed = (ip: string): Caller => ({ ...anonymous(ip), ...failureBucket(ip) });

/** The caller without a credential. */
export function anonymous(ip: string): Caller {
  return {
    kind: 'anonymous',
    user_id: null,
    account_id: null,
    credential_id: null,
    permissions: NO_PERMISSIONS,
    admin_permissions: NO_PERMISSIONS,
    user_permissions: NO_PERMISSIONS,
    rate_bucket: `ip:${networkOf(ip)}`,
    rate_limit: CONTEXTS.anonymous.rate,
    expires_at: null,
  };
}
