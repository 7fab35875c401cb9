import { z } from 'zod';
import type { Caller } from '../../access/authentication/caller';
import { grantorOf } from '../../access/authorization/delegation';
import { conflict, forbidden, invalid, unauthorized, type Refuse } from '../../app/operation';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { account, accountStream } from '../../domain/accounts/accounts';
import { INSTANT_PATTERN, parseInstant, shownInstant } from '../../lib/time/instants';
import { ACCOUNT_PERMISSIONS, isAccountPermission } from '../../domain/common/permissions';
import { requireGrantable } from '../../domain/accounts/roles';
import { NotBuilt } from '../../kernel/errors';

/** Label of a key or token, common to all that hold permissions of an account. */
export const label = z.string().trim().min(1, 'label is required').max(100, 'label must be 100 characters or less');

export const scope = z
  .array(
    z
      .string()
      .max(100)
      .meta({ enum: [...ACCOUNT_PERMISSIONS] }),
  )
  .min(1, 'permissions must name at least one permission')
  .max(500)
  .describe("A subset of the creator's own permissions; fixed once created");

export const expiry = z
  .string()
  .refine((text) => parseInstant(text) !== null, 'expires_at must be an RFC 3339 date-time')
  .meta({ pattern: INSTANT_PATTERN })
  .nullish()
  .describe('RFC 3339; null or absent: never, or when the key that makes it ends');

export const DeleteTokenResult = z.object({ success: z.boolean() }).meta({ id: 'DeleteTokenResult' });

export const SCOPE_ERRORS = {
  UNKNOWN_PERMISSION: invalid('Invalid permission: {permission}'),
  EXPIRY_IN_THE_PAST: invalid('expires_at cannot be in the past'),
  PERMISSION_BEYOND_OWN: forbidden('Missing permission: {permission}'),
  EXPIRY_BEYOND_OWN: forbidden('A key cannot make one that lives longer than itself'),
};
/** Credentials with an expiry that their maker set. */
const ENDING: ReadonlySet<string> = new Set(['user_api_key', 'service_key', 'popout']);

// A retry after a lost answer finds a key that nobody has seen, because only its hash is stored.
export const KEY_NOT_IN_VIEW = conflict(
  'The key was created but can no longer be shown; delete it and create another',
  {
    shows: ['id'],
  },
);

/** The caller's login was removed while the request ran. */
export const SESSION_ENDED = { SESSION_ENDED: unauthorized('The session has ended') };

const MAX_KEYS = 500;
export const TOO_MANY_KEYS = {
  TOO_MANY_KEYS: conflict(`There are ${MAX_KEYS} already; delete some first`),
};

/**
 * Refuses a further key above {@link MAX_KEYS}: keys are listed on one page and end together with a membership.
 * Concurrent calls may exceed the limit by their number, and so may calls while the read model is being built, because
 * no command waits for that.
 * @param keys a table of keys with a condition on their owner, by `values`
 */
export async function requireKeyQuota(
  { db }: Pick<Services, 'db'>,
  { keys, values }: { keys: string; values: readonly string[] },
  refuse: Refuse<typeof TOO_MANY_KEYS>,
): Promise<void> {
  const present = await db.query(`select 1 from ${keys} limit ${MAX_KEYS}`, values).catch((error: unknown) => {
    if (error instanceof NotBuilt) return [];
    throw error;
  });
  if (present.length >= MAX_KEYS) throw refuse('TOO_MANY_KEYS');
}

/**
 * Scope and expiry of a new key, as stored: registered permissions that {@link heldCheck} accepts, and an expiry that
 * {@link requireWithinOwnEnd} accepts; the default expiry is that of the key that makes it. Source: spec doc1 §5.4,
 * rulings "keys and what they make".
 * @throws DomainError of {@link SCOPE_ERRORS}
 */
export async function scopeOf(
  input: { permissions: readonly string[]; expires_at?: string | null | undefined },
  caller: Caller & { account_id: string },
  { now }: { now: number },
  { events }: Pick<Services, 'events'>,
  refuse: Refuse<typeof SCOPE_ERRORS>,
): Promise<{ permissions: string[]; expires_at: string | null }> {
  for (const permission of input.permissions) {
    if (!isAccountPermission(permission)) throw refuse('UNKNOWN_PERMISSION', { permission });
  }
  const wanted = instantOf(input.expires_at);
  if (wanted !== null && Date.parse(wanted) <= now) throw refuse('EXPIRY_IN_THE_PAST');
  (await heldCheck(events, caller))(input.permissions);
  const expires_at = wanted ?? ownEnd(caller);
  requireWithinOwnEnd(expires_at, caller, refuse);
  return { permissions: ACCOUNT_PERMISSIONS.filter((name) => input.permissions.includes(name)), expires_at };
}

/**
 * Returns a check that throws PERMISSION_BEYOND_OWN for permissions that the credential lacks, or that the role of the
 * member behind it does not grant now. A system key's `resource:*` covers each action of that resource.
 */
export async function heldCheck(
  events: Services['events'],
  caller: Caller & { account_id: string },
): Promise<(permissions: readonly string[]) => void> {
  const loaded = await load(events, account, accountStream(caller.account_id));
  return (permissions) => requireGrantable(loaded?.state ?? account.initial, grantorOf(caller), permissions);
}

/** Expiry of a credential that has one set by its maker; null is never. */
const ownEnd = ({ kind, expires_at }: Caller): string | null =>
  ENDING.has(kind) && expires_at !== null ? new Date(expires_at).toISOString() : null;

/** @throws DomainError EXPIRY_BEYOND_OWN when the caller's own key ends before `expires_at`; null is never */
export function requireWithinOwnEnd(
  expires_at: string | null,
  caller: Caller,
  refuse: Refuse<Pick<typeof SCOPE_ERRORS, 'EXPIRY_BEYOND_OWN'>>,
): void {
  if (endsLater(expires_at, ownEnd(caller))) throw refuse('EXPIRY_BEYOND_OWN');
}

/** True when an expiry `next` is later than `last`; null is never. */
export const endsLater = (next: string | null, last: string | null): boolean =>
  last !== null && (next === null || Date.parse(next) > Date.parse(last));

/** Parses a time that {@link expiry} accepted; null without one. */
export const instantOf = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : parseInstant(text);

/** Answer for a new key. */
export const toKeyView = (created: ShownKey) => ({
  key_prefix: created.key_prefix,
  label: created.label,
  permissions: created.permissions,
  created_at: shownInstant(created.created_at),
  expires_at: created.expires_at && shownInstant(created.expires_at),
  last_used_at: null,
});

interface ShownKey {
  key_prefix: string;
  label: string;
  permissions: string[];
  created_at: string;
  expires_at: string | null;
}

/**
 * Option for `act` that records the revocation before the append, so that no crash leaves a removed key valid while the
 * read model lags. If the append fails the key is dead all the same, and listed until the call is repeated.
 */
export const revokeBeforeAppend = ({ db }: Pick<Services, 'db'>, credential_id: string) => ({
  async additionalWrites() {
    await db.query('insert into revocations (credential_id) values ($1)', [credential_id]);
    return [];
  },
});
