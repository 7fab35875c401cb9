import { z } from 'zod';
import { PLATFORMS } from '../../common/vendors';
import { memberAt } from '../../../lib/json/paths';
import { holds, operand, operator } from './comparisons';
import { trigger } from './node-type';

const event_type = z
  .string()
  .max(100)
  .regex(/^[A-Za-z0-9_.-]+:[A-Za-z0-9_.:-]+$/, 'a type of events is prefix:action');
const MESSAGE_TYPE = /^(channel|obs|copyright):(\*|[A-Za-z0-9_.:-]+)$/;

export const filter = z.strictObject({
  path: z.string().min(1).max(200).describe('Members of `raw`, joined by dots'),
  op: operator,
  value: operand,
});
export type Filter = z.output<typeof filter>;

export const onEvent = trigger('event', {
  summary: 'A stored event of one of these types that passes all filters.',
  config: { event_types: z.array(event_type).min(1).max(100), filters: z.array(filter).max(20).optional() },
});

/** Whether a payload passes all filters of a trigger. */
export const passesFilters = ({ filters }: Readonly<Record<string, unknown>>, payload: unknown): boolean =>
  ((filters ?? []) as Filter[]).every(({ path, op, value }) => holds(memberAt(payload, path.split('.')), op, value));

export const manually = trigger('manual', { summary: 'A person starts the automation.' });

export const onMessage = trigger('message', {
  summary: 'A message that is broadcast and not stored: `channel:*`, `obs:*`, `copyright:*`.',
  config: {
    types: z
      .array(
        z.string().max(100).regex(MESSAGE_TYPE, 'types begin with channel:, obs: or copyright:; * stands for the rest'),
      )
      .min(1)
      .max(50),
  },
});

const MESSAGE_PREFIXES: ReadonlySet<string> = new Set(['channel', 'obs', 'copyright']);

/** Members of `types` that name messages of this type; none of a type that is no such message. */
export function messagePatterns(type: string): string[] {
  const prefix = type.slice(0, Math.max(0, type.indexOf(':')));
  return MESSAGE_PREFIXES.has(prefix) ? [type, `${prefix}:*`] : [];
}

export const onFirstMessage = trigger('first_message', {
  summary: "A person's first line in the chats of the account.",
  config: { platforms: z.array(z.enum(PLATFORMS)).min(1).max(4).optional() },
});

export const onBotCommand = trigger('bot_command', {
  summary: 'A bot command whose `automation_id` names the automation.',
});

export const onAutomation = trigger('automation', { summary: 'Another automation starts this one.' });
