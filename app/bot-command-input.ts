import { z } from 'zod';
import { DISCORD_FORMS, RESPONSE_TYPES } from '../domain/automation/bot-commands';
import { BOT_ROLES } from '../domain/automation/bot-roles';
import { BOT_PLATFORMS } from '../domain/common/vendors';

const LONGEST_NAME = 50;
/** `!`, and a name. */
const SPELT = /^!?\S{1,50}$/u;
const word = (member: string) =>
  z
    .string()
    .max(2 * LONGEST_NAME + 1)
    .regex(SPELT, `${member} must be 1 to ${LONGEST_NAME} characters without white space`)
    .transform((text) => (text.startsWith('!') ? text.slice(1) : text))
    .pipe(z.string().min(1, `${member} must be 1 to ${LONGEST_NAME} characters without white space`))
    .meta({ type: 'string' });

export const responseInput = z.string().trim().min(1).max(2_000, 'response must be 2000 characters or less');
export const platformsInput = z
  .array(z.enum(BOT_PLATFORMS))
  .min(1, 'platforms must name at least one platform')
  .max(2 * BOT_PLATFORMS.length)
  .transform((platforms) => BOT_PLATFORMS.filter((platform) => platforms.includes(platform)));
export const roleInput = z.enum(BOT_ROLES);
export const cooldownInput = z.int().min(0).max(86_400);

/** Members of a command. Source: spec extra-facts §14 and §31. */
export const commandInput = {
  name: word('name').describe('A leading `!` is dropped'),
  alias: word('alias').nullish().describe('Null: none'),
  description: z.string().trim().max(200, 'description must be 200 characters or less').nullish(),
  response_type: z.enum(RESPONSE_TYPES),
  response: responseInput.nullish().describe('Of `text` and `template`; `{{name}}` is replaced'),
  automation_id: z.string().max(100).nullish().describe('Of `automation`: the id of an automation'),
  platforms: platformsInput.nullish().describe('Default: all'),
  min_role: roleInput.nullish().describe('Default `everyone`'),
  cooldown_global: cooldownInput.nullish().describe('Seconds; default 0'),
  cooldown_user: cooldownInput.nullish().describe('Seconds; default 0'),
  discord_form: z.enum(DISCORD_FORMS).nullish().describe('Default `both`'),
  enabled: z.boolean().nullish().describe('Default true'),
};
