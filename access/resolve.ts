import { LRUCache } from 'lru-cache';
import type { Database } from '../engines/postgres/port';
import type { Logger } from '../engines/log/port';
import { ApiError } from '../kernel/errors';
import { expired, NO_PERMISSIONS, unauthorized, type Caller, type CallerKind, type Recognised } from './caller';
import {
  CONTEXTS,
  contextOf,
  isKey,
  tokenKind,
  wellFormed,
  type Finders,
  type PresentedToken,
  type SharedLookup,
} from './contexts';
import type { Counts } from './counts';
import { CredentialMemory } from './credential-memory';
import { KeySieve } from './key-sieve';
import { hashToken } from './keys';
import { LastUses } from './last-uses';
import { CredentialLookups, parseSystemKeys } from './lookups';
import { ProvenTokens } from './proven-tokens';
import { askAlone, askTogether } from './questions';
import { failureBucket, networkOf } from './rate-buckets';
import { concernsAll, type Revocation } from './revocations';
import type { Claims, Tokens } from './tokens';

/** What a request brings to say who it is from; strings as received. */
export interface Credentials {
  authorization: string | undefined;
  /** `?token=`. */
  query_token: string | undefined;
  /** The session in a popout page's cookie; counts where no `Authorization` came. Source: spec rulings, c20. */
  popout_cookie?: string | undefined;
  /** True only on the WebSocket upgrade, where more counts than elsewhere. */
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
   * limit made-up ones are told apart without a look-up each, and right ones go on working. Returns a promise only when
   * something has to be looked up. Source: spec doc1 §5.1–5.3, 5.9.
   * @throws ApiError RATE_LIMIT_EXCEEDED for one that is not right, past the limit; else rejects only when the database
   * cannot say
   */
  resolve(credentials: Credentials): Promise<Resolution> | Resolution;
  /**
   * What the credential of an open socket grants now, as the database has it; rejects when it cannot say. Those asked
   * about in one turn of the event loop cost one statement for each 500.
   */
  again(caller: Caller, now: number): Promise<Recognised>;
  /** Forgets at once what is remembered about these; the next request asks the database. */
  forget(revocation: Partial<Revocation>): void;
  /** Writes the last uses that are still in memory. */
  close(): Promise<void>;
}

/** Tokens whose signature is remembered at a time. */
const REMEMBERED = 20_000;

/** A token that counts by its shape and the way it came. */
interface Presented {
  kind: CallerKind;
  token: string;
  /** It came as the cookie, where nothing but a popout session counts: a user's token in it is nobody's. */
  cookie?: true;
}

/**
 * Makes the resolver. A credential is looked up at most once per 0.9 s, several requests at a time share one lookup,
 * and a signature is checked once per token: a revocation made elsewhere holds within a second, one told through
 * `forget` at the next request.
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
  const fixed = parseSystemKeys(deps.system_keys);
  const lookups = new CredentialLookups(askAlone(deps.db), fixed);
  /** Of sockets, which come and are looked at again in crowds. */
  const together = new CredentialLookups(askTogether(deps.db), fixed);
  const memory = new CredentialMemory();
  const sieve = new KeySieve(deps.db);
  const uses = new LastUses(deps.db, deps.log);
  const verified = new LRUCache<string, Claims>({ max: REMEMBERED });
  /** Raised when the keys that signed may have ended: what was verified by them is not remembered. */
  let generation = 0;
  const proven = new ProvenTokens();

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
  const finders: Finders = { lookups, claims };
  const upgrading: Finders = { lookups: together, claims };
  const recalled = (found: SharedLookup | Recognised) => ('load' in found ? memory.recall(found) : found);

  /** Returns a promise only when something has to be looked up. */
  function look({ kind, token }: Presented, hash: string, asked: Credentials): Recognised | Promise<Recognised> {
    const { find } = contextOf(kind);
    if (find === undefined || !wellFormed(kind, token)) return unauthorized;
    const { on_upgrade, account_header, now } = asked;
    const presented: PresentedToken = { token, hash, on_upgrade, account_header, now };
    const found = find(presented, on_upgrade ? upgrading : finders);
    return found instanceof Promise ? found.then(recalled) : recalled(found);
  }

  /** Past the limit of a network's failures only keys that are sure to exist are looked up; signatures tell as much. */
  async function lookWarily(presented: Presented, hash: string, asked: Credentials): Promise<Recognised> {
    const { kind, token } = presented;
    const sure = !isKey(kind) || lookups.isStatic(hash) || !wellFormed(kind, token) || (await sieve.exists(hash));
    return sure ? look(presented, hash, asked) : unauthorized;
  }

  /**
   * The unit is held before the look-up, so that many at once cannot all be looked up; whoever answers a failure counts
   * it.
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

  /** Who it is that was found, if it counts this way; remembers whether it was right. */
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
    // It may have ended since it was looked up.
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

    async again(caller, now) {
      // Nothing was presented, so nothing can have ended.
      if (caller.credential_id === null) return { caller, failure: null };
      return (await contextOf(caller.kind).again?.(caller, now, together)) ?? unauthorized;
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
 * Which of the presented credentials counts. A header with a recognised prefix is final. Source: spec doc1 §5.1 rules
 * 3–4, §5.2.
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

/** The anonymous caller that presented a credential which does not count. */
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
