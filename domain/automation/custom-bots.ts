import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

/** Overrides by operators of whether an account may have bots of its own. Source: spec extra-facts §18. */
export const CUSTOM_BOT_EVENTS = events({
  'custom_bot:override_set': event(
    { account_id: z.uuid(), allowed: z.boolean().nullable().describe('Null: the default, true'), set_at: instant() },
    { audit: { target: ['account', 'account_id'] } },
  ),
});
export type CustomBotEvent = EventOf<typeof CUSTOM_BOT_EVENTS>;

export interface CustomBotCommand {
  type: 'custom_bot:set_override';
  account_id: string;
  allowed: boolean | null;
  now: string;
}

export const customBotStream = (account_id: string): string => `custom-bot-${account_id}`;

export const customBot: Decider<boolean | null, CustomBotCommand, CustomBotEvent> = {
  initial: null,
  decide: (state, { account_id, allowed, now }) =>
    state === allowed ? [] : [{ type: 'custom_bot:override_set', account_id, allowed, set_at: now }],
  evolve: (_state, { allowed }) => allowed,
};
