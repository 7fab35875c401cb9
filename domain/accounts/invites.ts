import { Set as PersistentSet } from 'immutable';
import { z } from 'zod';
import { event, instant } from '../../kernel/event';
import { DomainError } from '../../kernel/errors';
import { requireAssignable, requireGrantable, type Grantor } from './roles';
import type { Account, AccountEvent } from './accounts';
import { ACCOUNT_PERMISSIONS } from '../common/permissions';
import { unreachable } from '../common/unreachable';

const account_id = z.uuid();
const invite_id = z.uuid();

/**
 * Invites into an account: whoever has the code becomes a member with the invite's role. Events carry the SHA-256 of
 * the code and its first characters, never the code. Source: spec extra-facts §4.
 */
export const inviteEvents = {
  'account:invite_created': event(
    {
      account_id,
      invite_id,
      code_hash: z.string().describe('Hex SHA-256 of the code'),
      code_prefix: z.string(),
      role_id: z.uuid(),
      made_by: z.uuid().nullable().describe('Null where a key of no person made it'),
      made_with: z.uuid().nullable().describe('The service key that made it, with which it ends'),
      max_uses: z.int32(),
      expires_at: instant().nullable(),
      created_at: instant(),
    },
    { version: 2, upcast: [(data) => ({ ...data, made_with: null })] },
  ),
  'account:invite_accepted': event({
    account_id,
    invite_id,
    user_id: z.uuid(),
    uses: z.int32().describe('With this one'),
    accepted_at: instant(),
  }),
  'account:invite_deleted': event({ account_id, invite_id, deleted_at: instant() }),
};

/** An invite as decisions know it. */
export interface Invite {
  role_id: string;
  made_by: string | null;
  made_with: string | null;
  /** Permissions of the role when the invite was made. */
  granted: readonly string[];
  max_uses: number;
  expires_at: string | null;
  /** Users who accepted it. */
  accepted: PersistentSet<string>;
}

export type InviteCommand =
  | {
      type: 'account:create_invite';
      invite_id: string;
      code_hash: string;
      code_prefix: string;
      role_id: string;
      by: NonNullable<Grantor>;
      made_with: string | null;
      max_uses: number;
      expires_at: string | null;
      now: string;
    }
  | { type: 'account:accept_invite'; invite_id: string; user_id: string; membership_id: string; now: string }
  | { type: 'account:delete_invite'; invite_id: string; now: string }
  /** The service key has ended. */
  | { type: 'account:delete_invites_of_key'; key_id: string; now: string };

/** Invites that an account keeps; beyond them those that nobody can use any more make room. */
const MAX_INVITES = 200;

export function decideInvite(state: Account, account_id: string, command: InviteCommand): AccountEvent[] {
  const { now } = command;
  if (command.type === 'account:delete_invites_of_key') {
    const made = [...state.invites].filter(([, { made_with }]) => made_with === command.key_id);
    return made.map(([invite_id]) => ({ type: 'account:invite_deleted', account_id, invite_id, deleted_at: now }));
  }
  const { invite_id } = command;
  switch (command.type) {
    case 'account:create_invite': {
      const { role_id, by, made_with, code_hash, code_prefix, max_uses, expires_at } = command;
      requireGrantable(state, by, requireAssignable(state, role_id).permissions);
      const made = { account_id, invite_id, code_hash, code_prefix, role_id, made_by: by.user_id, made_with, max_uses };
      return [
        ...removeClosedInvite(state, account_id, now),
        { type: 'account:invite_created', ...made, expires_at, created_at: now },
      ];
    }
    case 'account:accept_invite': {
      const { user_id, membership_id } = command;
      const invite = requireInvite(state, invite_id);
      if (state.members.has(user_id)) return [];
      if (isExpired(invite, now)) throw new DomainError('INVITE_EXPIRED');
      // A former member was removed or left: the same link does not let them back in.
      if (isUsedUp(invite) || invite.accepted.has(user_id)) throw new DomainError('INVITE_USED_UP');
      const { role_id } = invite;
      requireStillGiven(state, invite);
      const uses = invite.accepted.size + 1;
      return [
        { type: 'account:invite_accepted', account_id, invite_id, user_id, uses, accepted_at: now },
        { type: 'account:member_added', account_id, membership_id, user_id, role_id, added_at: now },
      ];
    }
    case 'account:delete_invite':
      requireInvite(state, invite_id);
      return [{ type: 'account:invite_deleted', account_id, invite_id, deleted_at: now }];
    default:
      return unreachable(command);
  }
}

/**
 * An invite gives no more than its maker could give by hand at this moment. A key of no person may be gone by now, so
 * that its invites give no more than they did on the day.
 */
function requireStillGiven(state: Account, { role_id, made_by, granted }: Invite): void {
  const by_hand = made_by === null ? [] : ['members:create'];
  const giver = { user_id: made_by, permissions: made_by === null ? granted : ACCOUNT_PERMISSIONS };
  try {
    requireGrantable(state, giver, [...requireAssignable(state, role_id).permissions, ...by_hand]);
  } catch (error) {
    if (error instanceof DomainError) throw new DomainError('INVITE_WITHDRAWN', { because: error.reason });
    throw error;
  }
}

/** Deletes an invite that nobody can use any more, when {@link MAX_INVITES} are there. */
function removeClosedInvite(state: Account, account_id: string, now: string): AccountEvent[] {
  if (state.invites.size < MAX_INVITES) return [];
  const closed = [...state.invites].find(([, invite]) => isExpired(invite, now) || isUsedUp(invite));
  if (closed === undefined) throw new DomainError('TOO_MANY_INVITES');
  return [{ type: 'account:invite_deleted', account_id, invite_id: closed[0], deleted_at: now }];
}

const isExpired = ({ expires_at }: Invite, now: string): boolean =>
  expires_at !== null && Date.parse(expires_at) <= Date.parse(now);
const isUsedUp = ({ accepted, max_uses }: Invite): boolean => accepted.size >= max_uses;

function requireInvite(state: Account, invite_id: string): Invite {
  const invite = state.invites.get(invite_id);
  if (invite === undefined) throw new DomainError('INVITE_NOT_FOUND', { invite_id });
  return invite;
}

export function evolveInvites(
  { invites, roles }: Pick<Account, 'invites' | 'roles'>,
  event: Extract<AccountEvent, { invite_id: string }>,
): Account['invites'] {
  const next = new Map(invites);
  const { invite_id } = event;
  switch (event.type) {
    case 'account:invite_created': {
      const { role_id, made_by, made_with, max_uses, expires_at } = event;
      const granted = roles.get(role_id)?.permissions ?? [];
      return next.set(invite_id, {
        role_id,
        made_by,
        made_with,
        granted,
        max_uses,
        expires_at,
        accepted: PersistentSet(),
      });
    }
    case 'account:invite_accepted': {
      const invite = invites.get(invite_id);
      if (invite === undefined) return invites;
      return next.set(invite_id, { ...invite, accepted: invite.accepted.add(event.user_id) });
    }
    case 'account:invite_deleted':
      next.delete(invite_id);
      return next;
    default:
      return unreachable(event);
  }
}
