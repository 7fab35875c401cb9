import { z } from 'zod';
import { event, instant } from '../../kernel/event';
import { DomainError } from '../../kernel/errors';
import type { Account, AccountEvent } from './accounts';
import { unassigned, withoutPrimary } from './login-assignments';
import { requireAssignable, requireGrantable, type Grantor } from './roles';
import { unreachable } from '../common/unreachable';

const account_id = z.uuid();
const user_id = z.uuid();

const OF_MEMBER = { audit: { target: ['member', 'user_id'] } } as const;

/** Members of an account with their roles, and its owner. Source: spec doc1 §5.9, extra-facts §5. */
export const memberEvents = {
  'account:member_added': event(
    { account_id, membership_id: z.uuid(), user_id, role_id: z.uuid(), added_at: instant() },
    OF_MEMBER,
  ),
  'account:member_role_changed': event({ account_id, user_id, role_id: z.uuid(), changed_at: instant() }, OF_MEMBER),
  'account:member_removed': event({ account_id, membership_id: z.uuid(), user_id, removed_at: instant() }, OF_MEMBER),
  'account:owner_replaced': event(
    {
      account_id,
      owner_id: user_id.describe('A member by then; this gives them the Owner role'),
      former_owner_id: user_id,
      former_role_id: z
        .uuid()
        .nullable()
        .describe('What the former owner holds instead; null: their membership ends next'),
      replaced_at: instant(),
    },
    { audit: { by: [] } },
  ),
};

export type MemberCommand =
  | { type: 'account:add_member'; membership_id: string; user_id: string; role_id: string; now: string }
  | { type: 'account:change_member_role'; user_id: string; role_id: string; by?: Grantor; now: string }
  | { type: 'account:remove_member'; user_id: string; now: string }
  | {
      type: 'account:replace_owner';
      user_id: string;
      /** Of the new owner, should they be no member yet. */
      membership_id: string;
      /** New role of the former owner; null ends their membership. */
      former_role_id: string | null;
      now: string;
    };

export function decideMember(state: Account, account_id: string, command: MemberCommand): AccountEvent[] {
  switch (command.type) {
    case 'account:add_member': {
      const { membership_id, user_id, role_id, now } = command;
      if (state.members.has(user_id)) throw new DomainError('ALREADY_A_MEMBER', { user_id });
      requireAssignable(state, role_id);
      return [{ type: 'account:member_added', account_id, membership_id, user_id, role_id, added_at: now }];
    }
    case 'account:change_member_role': {
      const { user_id, role_id, by = null, now } = command;
      const member = requireMember(state, user_id);
      const { permissions } = requireAssignable(state, role_id);
      requireGrantable(state, by, permissions);
      if (user_id === state.owner_id) throw new DomainError('OWNER_KEEPS_ROLE', { user_id });
      if (member.role_id === role_id) return [];
      return [{ type: 'account:member_role_changed', account_id, user_id, role_id, changed_at: now }];
    }
    case 'account:remove_member': {
      const { user_id, now } = command;
      requireMember(state, user_id);
      if (user_id === state.owner_id) throw new DomainError('OWNER_STAYS', { user_id });
      return removal(state, account_id, user_id, now);
    }
    case 'account:replace_owner':
      return decideOwner(state, account_id, command);
    default:
      return unreachable(command);
  }
}

/** A membership ends, and with it what the member acted with and whom they invited. */
function removal(state: Account, account_id: string, user_id: string, now: string): AccountEvent[] {
  const { membership_id } = requireMember(state, user_id);
  const invited = [...state.invites].filter(([, { made_by }]) => made_by === user_id);
  return [
    ...unassigned(state, account_id, user_id, now),
    ...invited.map(([invite_id]): AccountEvent => {
      return { type: 'account:invite_deleted', account_id, invite_id, deleted_at: now };
    }),
    { type: 'account:member_removed', account_id, membership_id, user_id, removed_at: now },
  ];
}

/** An operator's: who owns an account gives it to nobody by themselves. */
function decideOwner(
  state: Account,
  account_id: string,
  { user_id, membership_id, former_role_id, now }: Extract<MemberCommand, { type: 'account:replace_owner' }>,
): AccountEvent[] {
  const former_owner_id = state.owner_id!;
  if (user_id === former_owner_id) return [];
  if (former_role_id !== null) requireAssignable(state, former_role_id);
  // The picture was one of the former owner's.
  const events: AccountEvent[] = withoutPrimary(state, account_id, null, now);
  if (!state.members.has(user_id)) {
    const role_id = ownerRole(state);
    events.push({ type: 'account:member_added', account_id, membership_id, user_id, role_id, added_at: now });
  }
  const replaced = { account_id, owner_id: user_id, former_owner_id, former_role_id, replaced_at: now };
  events.push({ type: 'account:owner_replaced', ...replaced });
  if (former_role_id === null) events.push(...removal(state, account_id, former_owner_id, now));
  return events;
}

const ownerRole = ({ roles }: Account): string => [...roles].find(([, role]) => role.permissions === null)![0];

type MemberEvent = Extract<AccountEvent, { type: keyof typeof memberEvents }>;

export function evolveMembers(state: Account, event: MemberEvent): Account {
  switch (event.type) {
    case 'account:member_added': {
      const { user_id, membership_id, role_id } = event;
      return { ...state, members: state.members.set(user_id, { membership_id, role_id }) };
    }
    case 'account:member_role_changed': {
      const member = state.members.get(event.user_id);
      if (member === undefined) return state;
      return { ...state, members: state.members.set(event.user_id, { ...member, role_id: event.role_id }) };
    }
    case 'account:member_removed':
      return { ...state, members: state.members.delete(event.user_id) };
    case 'account:owner_replaced': {
      const { owner_id, former_owner_id, former_role_id } = event;
      const withRole = (members: Account['members'], user_id: string, role_id: string) => {
        const member = members.get(user_id);
        return member === undefined ? members : members.set(user_id, { ...member, role_id });
      };
      const members = withRole(state.members, owner_id, ownerRole(state));
      const then = former_role_id === null ? members : withRole(members, former_owner_id, former_role_id);
      return { ...state, owner_id, members: then };
    }
    default:
      return unreachable(event);
  }
}

function requireMember(state: Account, user_id: string) {
  const member = state.members.get(user_id);
  if (member === undefined) throw new DomainError('MEMBER_NOT_FOUND', { user_id });
  return member;
}
