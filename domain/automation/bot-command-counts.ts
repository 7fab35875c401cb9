import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, type EventOf } from '../../kernel/event';

const ids = { command_id: z.uuid(), account_id: z.uuid().nullable().describe('Null: a command of all accounts') };

/** Commands of an account, or of all accounts, by id: written with the command's own events. */
export const BOT_COMMAND_COUNT_EVENTS = events({
  // Not audited: the command's own event is, in the same append.
  'bot_command_count:added': event(ids, { audit: null }),
  'bot_command_count:removed': event(ids, { audit: null }),
});
export type BotCommandCountEvent = EventOf<typeof BOT_COMMAND_COUNT_EVENTS>;
export interface BotCommandCountCommand {
  type: 'bot_command_count:add' | 'bot_command_count:remove';
  command_id: string;
  account_id: string | null;
  /** Commands that were made before they were counted. */
  uncounted?: number;
}

/** Commands of an account, and of all accounts together. */
export const MAX_COMMANDS = 1_000;

export const botCommandCountStream = (account_id: string | null): string =>
  `bot-command-count-${account_id ?? 'global'}`;

export const botCommandCount: Decider<ReadonlySet<string>, BotCommandCountCommand, BotCommandCountEvent> = {
  initial: new Set(),
  decide(state, { type, command_id, account_id, uncounted = 0 }) {
    const is_counted = state.has(command_id);
    if (type === 'bot_command_count:remove')
      return is_counted ? [{ type: 'bot_command_count:removed', command_id, account_id }] : [];
    if (is_counted) return [];
    if (state.size + uncounted >= MAX_COMMANDS) throw new DomainError('TOO_MANY_COMMANDS');
    return [{ type: 'bot_command_count:added', command_id, account_id }];
  },
  evolve(state, { type, command_id }) {
    const next = new Set(state);
    if (type === 'bot_command_count:added') next.add(command_id);
    else next.delete(command_id);
    return next;
  },
};
