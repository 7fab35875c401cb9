import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { event, events, instant, type EventOf } from '../../kernel/event';
import type { JsonObject } from '../../lib/json/json';

/** Modules that act on lines of chats. */
export const LINE_MODULES = ['link_protection', 'spam_protection', 'word_filter'] as const;
export type LineModule = (typeof LINE_MODULES)[number];
/** Names of the bot's modules. Source: spec extra-facts §15. */
export const BOT_MODULES = [...LINE_MODULES, 'timed_messages'] as const;
export type BotModuleName = (typeof BOT_MODULES)[number];
export const isBotModule = (name: string): name is BotModuleName => (BOT_MODULES as readonly string[]).includes(name);

/** People whom a module spares. */
export const EXEMPT_ROLES = ['moderators', 'vips', 'subscribers'] as const;
export type ExemptRole = (typeof EXEMPT_ROLES)[number];

export const TIMED_MESSAGES = {
  most_messages: 50,
  most_characters: 500,
  min_interval: 60,
  max_interval: 86_400,
  /** Seconds between two messages, where the config has none. */
  interval: 600,
  max_chat_lines: 1_000,
} as const;

/** Feature flag of a module. */
export const moduleFlag = (name: BotModuleName): string => `bot_module:${name}`;
/** Owner of the schedules and jobs of an account's module. */
export const moduleOwner = (account_id: string, name: BotModuleName): string => `bot-module:${account_id}:${name}`;

const ids = { account_id: z.uuid(), module_name: z.enum(BOT_MODULES) };
const audit = { target: ['account', 'account_id'], by: ['module_name'] } as const;

/** Version 2 has more modules. */
const VERSION = { version: 2, upcast: [(data: JsonObject) => data] };

export const BOT_MODULE_EVENTS = events({
  'bot_module:configured': event(
    {
      ...ids,
      enabled: z.boolean(),
      config: z.string().describe('JSON text'),
      exempt_roles: z.array(z.enum(EXEMPT_ROLES)),
      configured_at: instant(),
    },
    { audit, ...VERSION },
  ),
  'bot_module:reset': event({ ...ids, reset_at: instant() }, { audit, ...VERSION }),
});
export type BotModuleEvent = EventOf<typeof BOT_MODULE_EVENTS>;

export interface BotModule {
  enabled: boolean;
  /** JSON text. */
  config: string;
  exempt_roles: readonly ExemptRole[];
}
export const DEFAULT_MODULE: BotModule = { enabled: false, config: '{}', exempt_roles: [] };
/** Modules of an account that differ from the default. */
export type BotModules = ReadonlyMap<BotModuleName, BotModule>;

export type BotModuleCommand = { account_id: string; module_name: BotModuleName; now: string } & (
  | {
      type: 'bot_module:configure';
      enabled?: boolean | undefined;
      config?: string | undefined;
      exempt_roles?: readonly ExemptRole[] | undefined;
    }
  | { type: 'bot_module:reset' }
);

export const botModulesStream = (account_id: string): string => `bot-modules-${account_id}`;

/** Modules of an account's bot, in one stream of it. */
export const botModules: Decider<BotModules, BotModuleCommand, BotModuleEvent> = {
  initial: new Map(),
  decide(state, command) {
    const { account_id, module_name, now } = command;
    const of = { account_id, module_name };
    const before = state.get(module_name);
    if (command.type === 'bot_module:reset')
      return before === undefined ? [] : [{ type: 'bot_module:reset', ...of, reset_at: now }];
    const { enabled, config, exempt_roles } = before ?? DEFAULT_MODULE;
    const after = {
      enabled: command.enabled ?? enabled,
      config: command.config ?? config,
      exempt_roles: [...(command.exempt_roles ?? exempt_roles)],
    };
    if (JSON.stringify(after) === JSON.stringify({ enabled, config, exempt_roles })) return [];
    return [{ type: 'bot_module:configured', ...of, ...after, configured_at: now }];
  },
  evolve(state, event) {
    const next = new Map(state);
    if (event.type === 'bot_module:reset') {
      next.delete(event.module_name);
      return next;
    }
    const { enabled, config, exempt_roles } = event;
    return next.set(event.module_name, { enabled, config, exempt_roles });
  },
};
