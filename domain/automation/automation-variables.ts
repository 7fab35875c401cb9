import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';

/** Variables of an account. */
export const MAX_VARIABLES = 200;
/** Characters of a text. */
export const MAX_VARIABLE_TEXT = 500;
export const VARIABLE_TYPES = ['number', 'text', 'boolean'] as const;
export type VariableType = (typeof VARIABLE_TYPES)[number];
export type VariableValue = number | string | boolean;

export const variableName = z
  .string()
  .regex(/^[A-Za-z0-9_]{1,50}$/, 'name must have 1 to 50 letters, digits or underscores');

const ids = { account_id: z.uuid(), name: z.string() };
const audit = { target: ['account', 'account_id'], by: ['name'] } as const;

/** Changes of variables by members; runs of automations write their rows without an event. */
export const AUTOMATION_VARIABLE_EVENTS = events({
  'automation_variable:set': event(
    { ...ids, value_type: z.enum(VARIABLE_TYPES), value: z.string().describe('JSON text'), set_at: instant() },
    { audit },
  ),
  'automation_variable:deleted': event({ ...ids, deleted_at: instant() }, { audit }),
});
export type AutomationVariableEvent = EventOf<typeof AUTOMATION_VARIABLE_EVENTS>;
export type AutomationVariableCommand = { account_id: string; name: string; now: string } & (
  { type: 'automation_variable:set'; value: VariableValue } | { type: 'automation_variable:delete' }
);

export const automationVariablesStream = (account_id: string): string => `automation-variables-${account_id}`;

const TYPES: Readonly<Record<string, VariableType>> = { number: 'number', string: 'text', boolean: 'boolean' };
export const variableType = (value: VariableValue): VariableType => TYPES[typeof value]!;

/** Keeps no state, because the rows alone have the names: runs create variables, too. */
export const automationVariables: Decider<null, AutomationVariableCommand, AutomationVariableEvent> = {
  initial: null,
  decide(_state, command) {
    const { account_id, name, now } = command;
    const of = { account_id, name };
    if (command.type === 'automation_variable:delete')
      return [{ type: 'automation_variable:deleted', ...of, deleted_at: now }];
    const { value } = command;
    const set = { value_type: variableType(value), value: JSON.stringify(value), set_at: now };
    return [{ type: 'automation_variable:set', ...of, ...set }];
  },
  evolve: () => null,
};

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?$/;

/** Whether a number has all digits of its text. */
const isExact = (text: string): boolean => text.includes('.') || Number.isSafeInteger(Number(text));

/**
 * Value of an expanded text. The text keeps the type that the variable has, where the text can be read so. A new
 * variable gets the type of the text: a number that keeps its digits, `true` or `false`, or any other text.
 */
export function variableValue(text: string, present: VariableType | undefined): VariableValue {
  const read = text.trim();
  if (present === 'text') return text;
  const is_number = NUMBER.test(read) && Number.isFinite(Number(read));
  if (is_number && (present === 'number' || (present === undefined && isExact(read)))) return Number(read);
  if (present !== 'number' && (read === 'true' || read === 'false')) return read === 'true';
  return text;
}
