import { z } from 'zod';
import { type BotModuleName, TIMED_MESSAGES } from '../bot-modules';
import { allowedDomain } from './linked-hosts';
import { MODULE_ACTIONS } from './module-acts';
import { compileWords } from './word-filter';

/** Seconds of a timeout, where the config has none. */
export const TIMEOUT_SECONDS = 600;
/** As long as Twitch allows. */
const MAX_TIMEOUT_SECONDS = 1_209_600;
/** Words and patterns of an account. */
const MAX_WORDS = 500;

const { most_messages, most_characters, min_interval, max_interval, interval, max_chat_lines } = TIMED_MESSAGES;

const acting = {
  action: z.enum(MODULE_ACTIONS).optional().describe('What happens to the line; default `delete`'),
  timeout_seconds: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_SECONDS)
    .optional()
    .describe(`Length of a timeout; default ${TIMEOUT_SECONDS}`),
  warning_text: z.string().trim().min(1).max(500).optional().describe('Answer of a warning'),
};

const domain = z
  .string()
  .trim()
  .min(1)
  .max(300)
  .refine((text) => allowedDomain(text) !== null, 'must be a domain')
  .transform((text) => allowedDomain(text)!)
  .meta({ type: 'string' });
const LinkProtectionConfig = z
  .strictObject({
    allowed_domains: z
      .array(domain)
      .max(500)
      .optional()
      .describe('Links to them and to their subdomains may be written'),
    ...acting,
  })
  .meta({ id: 'LinkProtectionConfig' });

const percent = z.int().min(0).max(100).optional();
const SpamProtectionConfig = z
  .strictObject({
    max_repeats: z.int().min(1).max(1_000).optional().describe('Equal characters or words in a row; absent: no limit'),
    max_caps_percent: percent.describe('Capital letters, from 10 characters on; absent: no limit'),
    max_symbols_percent: percent.describe('Symbols, from 10 characters on; absent: no limit'),
    max_emotes: z.int().min(0).max(1_000).optional().describe('Absent: no limit'),
    ...acting,
  })
  .meta({ id: 'SpamProtectionConfig' });

const filtered = z.array(z.string().trim().min(1).max(200)).max(MAX_WORDS).optional();
const WordFilterConfig = z
  .strictObject({
    words: filtered.describe('Whole words and phrases, without case; with the patterns at most 500'),
    patterns: filtered.describe('Regular expressions of RE2, without case'),
    ...acting,
  })
  .superRefine(({ words = [], patterns = [] }, context) => {
    const refuse = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message });
    if (words.length + patterns.length > MAX_WORDS) refuse('words', `with the patterns at most ${MAX_WORDS}`);
    try {
      compileWords({ patterns });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      refuse('patterns', error.message);
    }
  })
  .meta({ id: 'WordFilterConfig' });

const TimedMessagesConfig = z
  .strictObject({
    messages: z
      .array(z.string().trim().min(1).max(most_characters))
      .max(most_messages)
      .optional()
      .describe('Sent in turn; `{{name}}` is replaced'),
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
export const MODULE_CONFIGS = {
  link_protection: LinkProtectionConfig,
  spam_protection: SpamProtectionConfig,
  word_filter: WordFilterConfig,
  timed_messages: TimedMessagesConfig,
} as const satisfies Record<BotModuleName, z.ZodType>;
export type ModuleConfig<Name extends BotModuleName> = z.output<(typeof MODULE_CONFIGS)[Name]>;
