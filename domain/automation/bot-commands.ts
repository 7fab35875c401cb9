import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { release, reserve, type ReservationCommand } from '../common/reservations';
import { unreachable } from '../common/unreachable';
import { BOT_PLATFORMS } from '../common/vendors';
import { BOT_ROLES } from './bot-roles';

export const RESPONSE_TYPES = ['text', 'template', 'automation'] as const;
export type ResponseType = (typeof RESPONSE_TYPES)[number];
export const DISCORD_FORMS = ['prefix', 'slash', 'both'] as const;

const ids = { command_id: z.uuid(), account_id: z.uuid().nullable().describe('Null: a command of all accounts') };

/** Members of a command that its author chooses. Source: spec extra-facts §14 and §31. */
export const chosenMembers = {
  name: z.string().describe('Without the leading `!`'),
  alias: z.string().nullable(),
  description: z.string().nullable(),
  response_type: z.enum(RESPONSE_TYPES),
  response: z.string().nullable(),
  automation_id: z.uuid().nullable(),
  platforms: z.array(z.enum(BOT_PLATFORMS)),
  min_role: z.enum(BOT_ROLES).describe('Weakest role that may use it'),
  cooldown_global: z.int32().describe('Seconds between two uses'),
  cooldown_user: z.int32().describe('Seconds between two uses of one person'),
  discord_form: z.enum(DISCORD_FORMS),
  enabled: z.boolean(),
};
/** Name and alias as lines of a chat are compared with them. */
const keys = { name_key: z.string(), alias_key: z.string().nullable() };
const target = ['bot_command', 'command_id'] as const;
const audit = { target, omit: ['name_key', 'alias_key'] } as const;

export const BOT_COMMAND_EVENTS = events({
  'bot_command:created': event({ ...ids, ...chosenMembers, ...keys, created_at: instant() }, { audit }),
  'bot_command:updated': event({ ...ids, ...chosenMembers, ...keys, updated_at: instant() }, { audit }),
  'bot_command:deleted': event({ ...ids, deleted_at: instant() }, { audit: { target } }),
});
export type BotCommandEvent = EventOf<typeof BOT_COMMAND_EVENTS>;

const Chosen = z.object(chosenMembers);
export type Chosen = z.output<typeof Chosen>;
/** Changes of a command; `automation_id` may be any text until the command needs it. */
export type Changes = { [Member in keyof Chosen]?: Chosen[Member] | undefined };

export type BotCommandCommand = { now: string } & (
  | ({ type: 'bot_command:create'; command_id: string; account_id: string | null } & Chosen)
  | { type: 'bot_command:update'; changes: Changes }
  | { type: 'bot_command:delete' }
);

export interface BotCommand extends Chosen {
  status: 'none' | 'active' | 'deleted';
  command_id: string;
  account_id: string | null;
  created_at: string;
  updated_at: string;
}

export const botCommandStream = (command_id: string): string => `bot-command-${command_id}`;
/** Owner of the jobs that answer a command. */
export const botCommandOwner = (command_id: string): string => `bot-command:${command_id}`;

/** A name as names are compared: without case. */
export const nameKey = (name: string): string => name.normalize('NFC').toLowerCase();

const initial: BotCommand = {
  ...{ status: 'none', command_id: '', account_id: null, created_at: '', updated_at: '' },
  ...{ name: '', alias: null, description: null, response_type: 'text', response: null, automation_id: null },
  ...{ platforms: [], min_role: 'everyone', cooldown_global: 0, cooldown_user: 0, discord_form: 'both' },
  enabled: false,
};

const keysOf = ({ name, alias }: Pick<Chosen, 'name' | 'alias'>) => ({
  name_key: nameKey(name),
  alias_key: alias === null ? null : nameKey(alias),
});

/** @throws DomainError RESPONSE_MISSING, AUTOMATION_MISSING */
function requireAnswer({ response_type, response, automation_id }: Chosen): void {
  if (response_type !== 'automation') {
    if (response === null) throw new DomainError('RESPONSE_MISSING');
    return;
  }
  if (automation_id === null) throw new DomainError('AUTOMATION_MISSING');
}

const chosenOf = (command: BotCommand): Chosen => Chosen.parse(command);

/** A command that a bot answers in chats. */
export const botCommand: Decider<BotCommand, BotCommandCommand, BotCommandEvent> = {
  initial,
  decide(state, command) {
    const { now } = command;
    if (command.type === 'bot_command:create') {
      if (state.status !== 'none') return [];
      const { type: _type, now: _now, ...made } = command;
      requireAnswer(made);
      return [{ type: 'bot_command:created', ...made, ...keysOf(made), created_at: now }];
    }
    if (state.status !== 'active') throw new DomainError('COMMAND_NOT_FOUND');
    const of = { command_id: state.command_id, account_id: state.account_id };
    switch (command.type) {
      case 'bot_command:update': {
        const before = chosenOf(state);
        const given = Object.entries(command.changes).filter(([, value]) => value !== undefined);
        const after: Chosen = { ...before, ...Object.fromEntries(given) };
        requireAnswer(after);
        if (JSON.stringify(after) === JSON.stringify(before)) return [];
        return [{ type: 'bot_command:updated', ...of, ...after, ...keysOf(after), updated_at: now }];
      }
      case 'bot_command:delete':
        return [{ type: 'bot_command:deleted', ...of, deleted_at: now }];
      default:
        return unreachable(command);
    }
  },
  evolve(state, event) {
    switch (event.type) {
      case 'bot_command:created': {
        const { type: _type, name_key: _name, alias_key: _alias, ...made } = event;
        return { ...state, ...made, status: 'active', updated_at: event.created_at };
      }
      case 'bot_command:updated': {
        const { type: _type, name_key: _name, alias_key: _alias, ...changed } = event;
        return { ...state, ...changed };
      }
      case 'bot_command:deleted':
        return { ...state, status: 'deleted' };
      default:
        return unreachable(event);
    }
  },
};

/** Names of an account's commands; of the commands of all accounts another namespace. */
const nameKind = (account_id: string | null): string => `bot_command:${account_id ?? 'global'}`;

/**
 * Reservations of names and aliases for a change from `before`, which is the state before the first of the events.
 */
export function commandReservations(
  before: Pick<BotCommand, 'name' | 'alias' | 'status'>,
  events: readonly BotCommandEvent[],
): ReservationCommand[] {
  let held = new Set(before.status === 'active' ? namesOf(keysOf(before)) : []);
  return events.flatMap((event) => {
    const next = new Set(event.type === 'bot_command:deleted' ? [] : namesOf(event));
    const kind = nameKind(event.account_id);
    const changes = [
      ...[...held].filter((name) => !next.has(name)).map((name) => release(kind, name, event.command_id)),
      ...[...next].filter((name) => !held.has(name)).map((name) => reserve(kind, name, event.command_id)),
    ];
    held = next;
    return changes;
  });
}

const namesOf = ({ name_key, alias_key }: { name_key: string; alias_key: string | null }): string[] =>
  alias_key === null ? [name_key] : [name_key, alias_key];
