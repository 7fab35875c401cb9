import { z } from 'zod';
import {
  BOT_MODULES,
  type BotModule as ModuleState,
  type BotModuleName,
  DEFAULT_MODULE,
  EXEMPT_ROLES,
  TIMED_MESSAGES,
} from '../../domain/automation/bot-modules';
import type { Queryable } from '../../engines/postgres/port';

const { most_messages, most_characters, min_interval, max_interval, interval, max_chat_lines } = TIMED_MESSAGES;

/** Config of timed messages. */
export const TimedMessagesConfig = z
  .strictObject({
    messages: z
      .array(z.string().trim().min(1).max(most_characters))
      .max(most_messages)
      .optional()
      .describe('Sent in turn'),
    interval_seconds: z
      .int()
      .min(min_interval)
      .max(max_interval)
      .optional()
      .describe(`Seconds between two messages; default ${interval}`),
    min_chat_lines: z
      .int()
      .min(0)
      .max(max_chat_lines)
      .optional()
      .describe('Lines of the chat since the last message without which none is sent; default 0'),
  })
  .meta({ id: 'TimedMessagesConfig' });

/** Configs by module. */
export const MODULE_CONFIGS = { timed_messages: TimedMessagesConfig } as const satisfies Record<
  BotModuleName,
  z.ZodType
>;

const field = (type: string, label: string, value: unknown) => ({ type, label, default: value });
const SCHEMAS: Readonly<Record<BotModuleName, object>> = {
  timed_messages: {
    messages: field('strings', 'Messages, sent in turn', []),
    interval_seconds: { ...field('number', 'Seconds between two messages', interval), min: min_interval },
    min_chat_lines: { ...field('number', 'Lines of the chat since the last message', 0), min: 0 },
  },
};

/** A module of an account's bot. Source: spec extra-facts §15. */
export const BotModule = z
  .object({
    name: z.enum(BOT_MODULES),
    enabled: z.boolean(),
    config: TimedMessagesConfig.meta({ graphql: 'JSON' }),
    exempt_roles: z.array(z.enum(EXEMPT_ROLES)).describe('People whom the module spares'),
    config_schema: z
      .record(z.string(), z.unknown())
      .describe('By setting: `{type, label, default}`, and `min`')
      .meta({ graphql: 'JSON' }),
  })
  .meta({ id: 'BotModule' });
export type BotModule = z.output<typeof BotModule>;

export const shownModule = (name: BotModuleName, { enabled, config, exempt_roles }: ModuleState): BotModule => ({
  ...{ name, enabled, exempt_roles: [...exempt_roles], config_schema: { ...SCHEMAS[name] } },
  config: JSON.parse(config) as BotModule['config'],
});

/** All modules of an account, configured or not. */
export async function botModulesOf(db: Queryable, account_id: string): Promise<BotModule[]> {
  const rows = await db.query<ModuleState & { module_name: BotModuleName } & Record<string, unknown>>(
    `select module_name, enabled, config::text as config, exempt_roles from bot_modules where account_id = $1`,
    [account_id],
    'bot-modules',
  );
  return BOT_MODULES.map((name) =>
    shownModule(name, rows.find(({ module_name }) => module_name === name) ?? DEFAULT_MODULE),
  );
}
