import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { BOT_PLATFORMS } from '../common/vendors';
import { BOT_ROLES } from './bot-roles';

const ids = { command_id: z.uuid(), account_id: z.uuid() };
/** Members of a command that an account may replace; null: as the command says. */
const replaced = {
  response: z.string().nullable(),
  platforms: z.array(z.enum(BOT_PLATFORMS)).nullable(),
  min_role: z.enum(BOT_ROLES).nullable(),
  cooldown_global: z.int32().nullable(),
  cooldown_user: z.int32().nullable(),
  enabled: z.boolean().nullable(),
};
const audit = { target: ['bot_command', 'command_id'] } as const;

/** Changes of an account to a command of all accounts. Source: spec extra-facts §14. */
export const BOT_COMMAND_OVERRIDE_EVENTS = events({
  'bot_command:override_set': event({ ...ids, ...replaced, set_at: instant() }, { audit }),
  'bot_command:override_removed': event({ ...ids, removed_at: instant() }, { audit }),
});
export type BotCommandOverrideEvent = EventOf<typeof BOT_COMMAND_OVERRIDE_EVENTS>;

const Replaced = z.object(replaced);
export type Replaced = z.output<typeof Replaced>;
/** Null: the account has none. */
export type BotCommandOverride = Replaced | null;

export type BotCommandOverrideCommand = { command_id: string; account_id: string; now: string } & (
  { type: 'bot_command:set_override'; replaced: Replaced } | { type: 'bot_command:remove_override' }
);

export const botCommandOverrideStream = ({ account_id, command_id }: { account_id: string; command_id: string }) =>
  `bot-command-override-${account_id}-${command_id}`;

export const botCommandOverride: Decider<BotCommandOverride, BotCommandOverrideCommand, BotCommandOverrideEvent> = {
  initial: null,
  decide(state, command) {
    const { command_id, account_id, now } = command;
    const of = { command_id, account_id };
    if (command.type === 'bot_command:remove_override') {
      if (state === null) throw new DomainError('OVERRIDE_NOT_FOUND', of);
      return [{ type: 'bot_command:override_removed', ...of, removed_at: now }];
    }
    const after = Replaced.parse(command.replaced);
    if (JSON.stringify(after) === JSON.stringify(state)) return [];
    return [{ type: 'bot_command:override_set', ...of, ...after, set_at: now }];
  },
  evolve: (_state, event) => (event.type === 'bot_command:override_set' ? Replaced.parse(event) : null),
};
