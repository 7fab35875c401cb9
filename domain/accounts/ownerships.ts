import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';

/**
 * The accounts that a user made, a stream a user: written in the append that makes an account, so that of two made at
 * once on two nodes the second is counted against the first.
 */
export const OWNERSHIP_EVENTS = events({
  'ownership:opened': event(
    {
      user_id: z.uuid(),
      account_id: z.uuid(),
      ended: z.array(z.uuid()).describe('Accounts counted before that are theirs no more'),
      opened_at: instant(),
    },
    // Not audited: the account's own event is, and its members need not know of the owner's other accounts.
    { audit: null },
  ),
  // Not audited: the user's deletion is, in the same append.
  'ownership:closed': event({ user_id: z.uuid(), closed_at: instant() }, { audit: null }),
});
export type OwnershipEvent = EventOf<typeof OWNERSHIP_EVENTS>;

export interface OpenOwnership {
  type: 'ownership:open';
  user_id: string;
  account_id: string;
  /** Owned and formerly owned accounts of the user, as read from the accounts a moment ago. */
  owned: readonly string[];
  ended: readonly string[];
  max_accounts: number;
  /** Whether they may have more than one account at all. */
  several: boolean;
  now: string;
}

export type OwnershipCommand = OpenOwnership | { type: 'ownership:close'; user_id: string; now: string };

export const ownershipStream = (user_id: string): string => `ownership-${user_id}`;

/**
 * The accounts that may be the user's: those that have ended or passed to others meanwhile are still among them. Null:
 * the user is deleted.
 */
export const ownership: Decider<ReadonlySet<string> | null, OwnershipCommand, OwnershipEvent> = {
  initial: new Set(),
  decide(state, command) {
    const { user_id, now } = command;
    if (state === null) throw new DomainError('USER_NOT_FOUND', { user_id });
    if (command.type === 'ownership:close') return [{ type: 'ownership:closed', user_id, closed_at: now }];
    const { account_id, owned, ended, max_accounts, several } = command;
    const held = new Set([...owned, ...[...state].filter((id) => !ended.includes(id))]);
    if (held.size > 0 && !several) throw new DomainError('ONE_ACCOUNT_ONLY');
    if (held.size >= max_accounts) throw new DomainError('PLAN_LIMIT_REACHED', { limit: 'max_accounts' });
    return [{ type: 'ownership:opened', user_id, account_id, ended: [...ended], opened_at: now }];
  },
  evolve(state, event) {
    if (event.type === 'ownership:closed') return null;
    return new Set([...[...(state ?? [])].filter((id) => !event.ended.includes(id)), event.account_id]);
  },
};
