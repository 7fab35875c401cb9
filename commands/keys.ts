import { z } from 'zod';
import type { Caller } from '../access/caller';
import { giverOf } from '../access/giver';
import { conflict, forbidden, invalid, type Refuse } from '../access/operation';
import type { Services } from '../access/services';
import { load } from '../access/states';
import { account, accountStream } from '../domain/accounts';
import { INSTANT_PATTERN, parseInstant, shownInstant } from '../domain/instants';
import { ACCOUNT_PERMISSIONS, isAccountPermission } from '../domain/permissions';
import { requireGivable } from '../domain/roles';
import { NotBuilt } from '../kernel/errors';

/** What keys and tokens that hold permissions of an account have in common where they are made. */
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
/** Credentials that end by themselves at a time that their maker set. */
const ENDING: ReadonlySet<string> = new Set(['user_api_key', 'service_key', 'popout']);

// A retry of a call whose answer was lost finds a key that nobody has seen: only its hash was kept.
export const KEY_NOT_SHOWN = conflict('The key was created but can no longer be shown; delete it and create another', {
  shows: ['id'],
});

const MOST_KEYS = 500;
export const TOO_MANY_KEYS = {
  TOO_MANY_KEYS: conflict(`There are ${MOST_KEYS} already; delete some first`),
};

/**
 * Refuses a further key where there are too many: they are listed on one page, or end together with a membership.
 * Calls made at one moment may go past it by as many as they are, and so may those made while the read model is being
 * built, since no command waits for that.
 * @param keys a table of keys and whose they are, by `values`
 */
export async function requireRoom(
  { db }: Pick<Services, 'db'>,
  { keys, values }: { keys: string; values: readonly string[] },
  refuse: Refuse<typeof TOO_MANY_KEYS>,
): Promise<void> {
  const present = await db.query(`select 1 from ${keys} limit ${MOST_KEYS}`, values).catch((error: unknown) => {
    if (error instanceof NotBuilt) return [];
    throw error;
  });
  if (present.length >= MOST_KEYS) throw refuse('TOO_MANY_KEYS');
}

/**
 * The scope and the end of a new key, as they are stored: registered permissions that {@link heldCheck} accepts, and an
 * end that {@link requireWithinOwnEnd} accepts; without one the end of the key that makes it. Source: spec doc1
 * §5.4, rulings "keys and what they make".
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
  return (permissions) => requireGivable(loaded?.state ?? account.initial, giverOf(caller), permissions);
}

/** The end of a credential that ends at a time that its maker set; null is never. */
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

/** True when a key that ends at `next` lives longer than one that ends at `last`; null is never. */
export const endsLater = (next: string | null, last: string | null): boolean =>
  last !== null && (next === null || Date.parse(next) > Date.parse(last));

/** A time that {@link expiry} let pass; null where there is none. */
export const instantOf = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : parseInstant(text);

/** What is shown of a key that was just made. */
export const shownKey = (created: ShownKey) => ({
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
 * For `act`: what ends a credential is written before the append, and not by the projector alone, so that no crash
 * leaves a removed key alive while its read model lags. A key whose append failed is dead too, as was wanted; it is
 * listed until the call is repeated.
 */
export const deadFirst = ({ db }: Pick<Services, 'db'>, credential_id: string) => ({
  async also() {
    await db.query('insert into revocations (credential_id) values ($1)', [credential_id]);
    return [];
  },
});
