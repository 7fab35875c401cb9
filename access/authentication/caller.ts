import type { ClientClaims } from './tokens/oauth-claims';

/**
 * Kind of a caller: one of ten contexts (spec doc1 §5.1). A caller carries everything that a guard reads, resolved once
 * per request, so that guards are plain data and synchronous.
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
  /** The acting user; of a popout token the member that it acts for; null for credentials without one. */
  user_id: string | null;
  /** The member who made a popout token; its acts are recorded under that member ({@link actorOf}). */
  made_by?: string;
  /** Set where a session of a popout token calls, not the raw token. */
  popout_session?: true;
  /**
   * Account of account-scoped operations; null without one (anonymous, a JWT without an active account, a system key
   * without `X-Lumio-Account`).
   */
  account_id: string | null;
  /** Id of the credential: session id for a JWT, key or token id otherwise; null for anonymous. */
  credential_id: string | null;
  /** Account-scope permissions; for a system key its grants as stored (`resource:*` may occur). */
  permissions: ReadonlySet<string>;
  admin_permissions: ReadonlySet<string>;
  user_permissions: ReadonlySet<string>;
  /** The channel that a token of an overlay, widget or install opens; absent for all others. */
  bound_channel?: string;
  /**
   * Permissions granted to an extension at its install. Only channel gates read them: `permissions` stays empty.
   * Source: spec doc1 §5.6, ruling c16.
   */
  install_grants?: ReadonlySet<string>;
  /** The OAuth client that holds a JWT; such a caller is never first party. Absent for all others. */
  client?: ClientClaims;
  /** Ids of further credentials whose end also ends this one; absent without any. */
  ends_with?: readonly string[];
  /** Bucket for rate limiting (spec rulings, "rate-limit buckets"). */
  rate_bucket: string;
  /** Requests a minute; null is unlimited. */
  rate_limit: number | null;
  /** Unix milliseconds at which the credential ends; null is never. */
  expires_at: number | null;
}

/** Result of resolving a credential: its caller, or the reason for refusing it. */
export type Recognised =
  { caller: Caller; failure: null } | { caller: null; failure: 'TOKEN_EXPIRED' | 'UNAUTHORIZED' };

export const unauthorized: Recognised = { caller: null, failure: 'UNAUTHORIZED' };
export const expired: Recognised = { caller: null, failure: 'TOKEN_EXPIRED' };

export const NO_PERMISSIONS: ReadonlySet<string> = new Set();

/**
 * The person that a caller's acts are recorded under, and the other member that a popout token acts for. Source: spec
 * rulings, "popout tokens that act for another member".
 */
export function actorOf({ user_id, made_by }: Pick<Caller, 'user_id' | 'made_by'>): {
  user_id: string | null;
  acts_for: string | null;
} {
  if (made_by === undefined || made_by === user_id) return { user_id, acts_for: null };
  return { user_id: made_by, acts_for: user_id };
}

/** Whether the end of this credential id ends the caller. */
export const endsWith = ({ credential_id, ends_with }: Caller, id: string): boolean =>
  credential_id === id || ends_with?.includes(id) === true;

/** Whether two callers of one account hold the same permissions. */
export function grantsAlike(one: Caller, other: Caller): boolean {
  const alike = (some: ReadonlySet<string> = NO_PERMISSIONS, more: ReadonlySet<string> = NO_PERMISSIONS) =>
    some === more || (some.size === more.size && [...some].every((name) => more.has(name)));
  return (
    alike(one.install_grants, other.install_grants) &&
    alike(one.permissions, other.permissions) &&
    alike(one.admin_permissions, other.admin_permissions) &&
    alike(one.user_permissions, other.user_permissions)
  );
}

/**
 * Writes of a request that read models must reach: events of these types up to a position, or records of a topic.
 * Survives JSON.
 */
export type Written =
  | { position: string; types: readonly string[] }
  | { topic: string; ends: readonly (readonly [partition: number, end: number])[]; projections: readonly string[] };

/** Charges the cost of a request beyond its own unit. */
export interface RequestUnits {
  /** @throws ApiError RATE_LIMIT_EXCEEDED where the bucket is used up */
  take(bucket: Pick<Caller, 'rate_bucket' | 'rate_limit'>, units: number): Promise<void>;
  /**
   * Counts the request's own unit against this bucket instead.
   * @throws ApiError RATE_LIMIT_EXCEEDED where the bucket is used up
   */
  moveTo(bucket: Pick<Caller, 'rate_bucket' | 'rate_limit'>): Promise<void>;
  /** The deferred refusal of the request's own unit; null where the unit was counted or moved. */
  refusal(): Error | null;
}

/** Context of a request besides its body. */
export interface RequestContext {
  correlation_id: string;
  /** Id of the event that caused this request; absent for a caller's own request. */
  causation_id?: string;
  /** W3C traceparent of the request, when it carried or was given one. */
  trace: string | null;
  ip: string;
  /** Received at, Unix milliseconds. */
  now: number;
  /**
   * Hash of caller, route and `Idempotency-Key`; event ids derive from it, so that a retried command does not append
   * twice.
   */
  idempotency_seed: string | null;
  /**
   * When the seed was made, Unix milliseconds: no event under it is older. Infinity: in this request. Absent: unknown.
   */
  seed_since?: number;
  /** Absent where requests are not counted. */
  units?: RequestUnits;
  /**
   * Calls the listener when the caller disconnects before the answer. Absent where the caller cannot disconnect.
   * Returns an unsubscribe function.
   */
  onGone?: (listener: () => void) => () => void;
  /**
   * Headers that the answer will carry on both protocols (`Set-Cookie`, `X-Lumio-Read-Model`); set by operations and
   * services.
   */
  response_headers?: Record<string, string>;
  /** Writes that the answer stopped waiting for; a repetition of the request waits for them again. */
  not_shown?: Written[];
  /** The answer is not final: a repetition under the same `Idempotency-Key` runs again. */
  unfinished?: true;
  /** Kept under the `Idempotency-Key` instead of the answer, which a repetition makes again from it. */
  answer_reference?: string;
  /** Reference that the first call has kept, in a repetition. */
  repeats?: string;
  /** Bytes of rows after which each page of the answer ends; absent where the answer is one page. */
  page_bytes?: number;
  /** Deadline of the request's waits for read models, by `performance.now()`; set by the first wait that timed out. */
  behind_until?: number;
}
