import { z } from 'zod';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { isLimitValue } from '../billing/plan-limits';
import { unreachable } from '../common/unreachable';

/** Whether a user may make accounts: as the global switch says, always, or never. Source: spec doc2 §2.2. */
export const ACCOUNT_CREATION_OVERRIDES = ['default', 'allow', 'deny'] as const;
export type AccountCreationOverride = (typeof ACCOUNT_CREATION_OVERRIDES)[number];

const user_id = z.uuid();
const OF_USER = { audit: { target: ['user', 'user_id'] } } as const;

/** Overrides of flags and plans by an operator for one user. Source: spec doc2 §2.2 and §2.3, extra-facts §3. */
export const USER_OVERRIDE_EVENTS = events({
  'user_override:account_creation_set': event(
    {
      user_id,
      override: z.enum(ACCOUNT_CREATION_OVERRIDES),
      set_at: instant(),
    },
    OF_USER,
  ),
  'user_override:max_accounts_set': event(
    {
      user_id,
      max_accounts: z.int().nullable().describe('Null takes the override away'),
      set_at: instant(),
    },
    OF_USER,
  ),
});
export type UserOverrideEvent = EventOf<typeof USER_OVERRIDE_EVENTS>;

export type UserOverrideCommand =
  | { type: 'user_override:set_account_creation'; user_id: string; override: AccountCreationOverride; now: string }
  | { type: 'user_override:set_max_accounts'; user_id: string; max_accounts: number | null; now: string };

export interface UserOverrides {
  account_creation: AccountCreationOverride;
  max_accounts: number | null;
}

export const userOverrideStream = (user_id: string): string => `user-override-${user_id}`;

export const userOverrides: Decider<UserOverrides, UserOverrideCommand, UserOverrideEvent> = {
  initial: { account_creation: 'default', max_accounts: null },
  decide(state, command) {
    const { user_id, now } = command;
    switch (command.type) {
      case 'user_override:set_account_creation': {
        const { override } = command;
        if (override === state.account_creation) return [];
        return [{ type: 'user_override:account_creation_set', user_id, override, set_at: now }];
      }
      case 'user_override:set_max_accounts': {
        const { max_accounts } = command;
        if (max_accounts !== null && !isLimitValue(max_accounts)) throw new DomainError('NEGATIVE_LIMIT');
        if (max_accounts === state.max_accounts) return [];
        return [{ type: 'user_override:max_accounts_set', user_id, max_accounts, set_at: now }];
      }
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    return event.type === 'user_override:account_creation_set'
      ? { ...state, account_creation: event.override }
      : { ...state, max_accounts: event.max_accounts };
  },
};
