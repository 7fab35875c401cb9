import type { ClientClaims } from './oauth-claims';

/**
 * Who is calling: exactly one of ten contexts (spec doc1 §5.1). Everything a guard needs is on it, resolved once per
 * request, so guards are plain data and synchronous.
 */
export type CallerKind =
  | 'system_key'
  | 'user_api_key'
  | 'service_key'
  | 'jwt'
  | 'popout'
  | 'overlay'
  | 'shared_overlay'
  | 'extension'
  | 'widget'
  | 'anonymous';

export interface Caller {
  kind: CallerKind;
  /** The acting user; null for credentials without one. */
  user_id: string | null;
  /** Who made a popout token, in whose place it gives: not always whom it acts for. */
  made_by?: string;
  /**
   * The account that account-scoped operations act on; null when there is none (anonymous, a JWT without an active
   * account, a system key without `X-Lumio-Account`).
   */
  account_id: string | null;
  /** Id of the credential: session id for a JWT, key or token id otherwise; null for anonymous. */
  credential_id: string | null;
  /** Account-scope permissions; for a system key its grants as stored (`resource:*` may occur). */
  permissions: ReadonlySet<string>;
  admin_permissions: ReadonlySet<string>;
  user_permissions: ReadonlySet<string>;
  /** The one channel that a token of an overlay, widget or install opens by being its own; others have none. */
  bound_channel?: string;
  /**
   * What an extension was granted at its install. Channel gates alone read it: `permissions` stays empty. Source: spec
   * doc1 §5.6, ruling c16.
   */
  install_grants?: ReadonlySet<string>;
  /** The OAuth client that a JWT was given to; it is never the user themselves. Absent for all others. */
  client?: ClientClaims;
  /** Ids of further credentials that this one ends with; absent where there are none. */
  ends_with?: readonly string[];
  /** Bucket for rate limiting (spec rulings, "rate-limit buckets"). */
  rate_bucket: string;
  /** Requests a minute; null is unlimited. */
  rate_limit: number | null;
  /** Unix milliseconds at which the credential ends; null is never. */
  expires_at: number | null;
}

/** What a credential comes to: its caller, or why it does not count. */
export type Recognised =
  { caller: Caller; failure: null } | { caller: null; failure: 'TOKEN_EXPIRED' | 'UNAUTHORIZED' };

export const unauthorized: Recognised = { caller: null, failure: 'UNAUTHORIZED' };
export const expired: Recognised = { caller: null, failure: 'TOKEN_EXPIRED' };

export const NO_PERMISSIONS: ReadonlySet<string> = new Set();

/** Whether it ends when the credential of this id does. */
export const endsWith = ({ credential_id, ends_with }: Caller, id: string): boolean =>
  credential_id === id || ends_with?.includes(id) === true;

/** Whether `now` still acts on the same account and grants all that `held` did. */
export function stillGrants(now: Caller, held: Caller): boolean {
  const covers = (granted: ReadonlySet<string>, wanted: ReadonlySet<string>) =>
    granted === wanted || [...wanted].every((name) => granted.has(name));
  return (
    now.account_id === held.account_id &&
    now.bound_channel === held.bound_channel &&
    covers(now.install_grants ?? NO_PERMISSIONS, held.install_grants ?? NO_PERMISSIONS) &&
    covers(now.permissions, held.permissions) &&
    covers(now.admin_permissions, held.admin_permissions) &&
    covers(now.user_permissions, held.user_permissions)
  );
}

/**
 * What a request wrote, as read models are waited for: events of these types up to a position, or records of a topic.
 * As JSON it stays whole.
 */
export type Written =
  | { position: string; types: readonly string[] }
  | { topic: string; ends: readonly (readonly [partition: number, end: number])[]; projections: readonly string[] };

/** What a request brings beside its body. */
export interface RequestContext {
  correlation_id: string;
  /** Id of the event that this request follows from; absent where a caller asked by themselves. */
  causation_id?: string;
  /** W3C traceparent of the request, when it carried or was given one. */
  trace: string | null;
  ip: string;
  /** Received at, Unix milliseconds. */
  now: number;
  /**
   * Hash of caller, route and `Idempotency-Key`; event ids derive from it so that a retried command appends nothing
   * twice.
   */
  idempotency_seed: string | null;
  /**
   * Tells when the caller has gone before the answer, for who waits on their behalf; absent where nobody can leave.
   * Returns how to stop listening.
   */
  onGone?: (listener: () => void) => () => void;
  /**
   * Headers that the answer will carry on both protocols (`Set-Cookie`, `X-Lumio-Read-Model`); set by operations and
   * services.
   */
  response_headers?: Record<string, string>;
  /** What its answer did not wait for any longer; the answer's repetition waits for it again. */
  not_shown?: Written[];
  /** When its waits for read models end, by `performance.now()`; set by the first that ended in vain. */
  behind_until?: number;
}
