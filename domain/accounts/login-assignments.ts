import { z } from 'zod';
import { event, instant } from '../../kernel/event';
import { DomainError } from '../../kernel/errors';
import type { Account, AccountEvent } from './accounts';
import { unreachable } from '../common/unreachable';

const account_id = z.uuid();
const user_id = z.uuid();

/**
 * Which of their logins the members act with on an account, one for each provider, and the one of the owner's that the
 * account is shown with. Source: spec doc2 §2.9, extra-facts §3.
 */
export const loginEvents = {
  'account:login_assigned': event(
    {
      account_id,
      assignment_id: z.uuid(),
      user_id,
      login_connection_id: z.uuid(),
      provider: z.string(),
      assigned_at: instant(),
    },
    { audit: { by: ['user_id', 'provider'] } },
  ),
  'account:login_unassigned': event(
    { account_id, user_id, provider: z.string(), unassigned_at: instant() },
    { audit: { by: ['user_id', 'provider'] } },
  ),
  'account:primary_login_set': event(
    {
      account_id,
      login_connection_id: z.uuid().nullable().describe("Null: the account is shown with its owner's picture"),
      set_at: instant(),
    },
    { audit: { by: [] } },
  ),
};

/** Whether the login is theirs is asked where logins are known, before one of these. */
export type LoginCommand =
  | {
      type: 'account:assign_login';
      assignment_id: string;
      user_id: string;
      login_connection_id: string;
      provider: string;
      now: string;
    }
  | { type: 'account:unassign_login'; user_id: string; provider: string; now: string }
  | { type: 'account:set_primary_login'; login_connection_id: string | null; user_id: string; now: string }
  /** The login is gone: whatever was said of it on the account goes too. */
  | { type: 'account:forget_login'; login_connection_id: string; user_id: string; now: string };

export function decideLogin(state: Account, account_id: string, command: LoginCommand): AccountEvent[] {
  const { user_id, now } = command;
  switch (command.type) {
    case 'account:assign_login': {
      const { type: _type, now: assigned_at, ...assigned } = command;
      if (!state.members.has(user_id)) throw new DomainError('MEMBER_NOT_FOUND', { user_id });
      const present = state.logins.get(user_id)?.[command.provider];
      if (present === command.login_connection_id) return [];
      if (present !== undefined) requireNotPrimary(state, present);
      return [{ type: 'account:login_assigned', account_id, ...assigned, assigned_at }];
    }
    case 'account:unassign_login': {
      const { provider } = command;
      const present = state.logins.get(user_id)?.[provider];
      if (present === undefined) throw new DomainError('ASSIGNMENT_NOT_FOUND', { provider });
      requireNotPrimary(state, present);
      return [{ type: 'account:login_unassigned', account_id, user_id, provider, unassigned_at: now }];
    }
    case 'account:set_primary_login': {
      const { login_connection_id } = command;
      if (user_id !== state.owner_id) throw new DomainError('NOT_THE_OWNER', { user_id });
      if (login_connection_id === state.primary_login) return [];
      return [{ type: 'account:primary_login_set', account_id, login_connection_id, set_at: now }];
    }
    case 'account:forget_login': {
      const { login_connection_id } = command;
      return [
        ...withoutPrimary(state, account_id, login_connection_id, now),
        ...unassigned(state, account_id, user_id, now, (one) => one === login_connection_id),
      ];
    }
    default:
      return unreachable(command);
  }
}

function requireNotPrimary({ primary_login }: Account, login_connection_id: string): void {
  if (primary_login === login_connection_id) throw new DomainError('PRIMARY_LOGIN', { login_connection_id });
}

/** The account is shown with another picture; without a login named, whichever it was shown with. */
export function withoutPrimary(
  { primary_login }: Account,
  account_id: string,
  login_connection_id: string | null,
  now: string,
): AccountEvent[] {
  if (primary_login === null || primary_login !== (login_connection_id ?? primary_login)) return [];
  return [{ type: 'account:primary_login_set', account_id, login_connection_id: null, set_at: now }];
}

/** The member's assignments end, all of them or those of some logins. */
export function unassigned(
  { logins }: Account,
  account_id: string,
  user_id: string,
  now: string,
  which: (login_connection_id: string) => boolean = () => true,
): AccountEvent[] {
  return Object.entries(logins.get(user_id) ?? {})
    .filter(([, login_connection_id]) => which(login_connection_id))
    .map(([provider]) => ({ type: 'account:login_unassigned', account_id, user_id, provider, unassigned_at: now }));
}

export function evolveLogins(
  logins: Account['logins'],
  event: Extract<AccountEvent, { type: 'account:login_assigned' | 'account:login_unassigned' }>,
): Account['logins'] {
  const { user_id, provider } = event;
  const { [provider]: _before, ...others } = logins.get(user_id) ?? {};
  if (event.type === 'account:login_assigned')
    return logins.set(user_id, { ...others, [provider]: event.login_connection_id });
  return Object.keys(others).length === 0 ? logins.delete(user_id) : logins.set(user_id, others);
}
