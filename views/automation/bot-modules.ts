import { z } from 'zod';
import {
  BOT_MODULES,
  type BotModule as ModuleState,
  type BotModuleName,
  DEFAULT_MODULE,
  EXEMPT_ROLES,
} from '../../domain/automation/bot-modules';
import { MODULE_CONFIGS } from '../../domain/automation/modules/module-configs';
import { BOT_MODULE_TYPES } from '../../domain/studio/widget-types';
import type { Queryable } from '../../engines/postgres/port';

const SCHEMAS = new Map<string, object>(BOT_MODULE_TYPES.map(({ type, config_schema }) => [type, config_schema]));

/** Name of a module, as REST has it in its paths. */
export const moduleName = z.string().max(100).meta({ graphql_name: 'name' });

/** A module of an account's bot. Source: spec extra-facts §15. */
export const BotModule = z
  .object({
    name: z.enum(BOT_MODULES),
    enabled: z.boolean(),
    config: z.union(Object.values(MODULE_CONFIGS)).meta({ graphql: 'JSON' }),
    exempt_roles: z.array(z.enum(EXEMPT_ROLES)).describe('People whom the module spares'),
    config_schema: z
      .record(z.string(), z.unknown())
      .describe('By setting: `{type, label, default}`; of a `select` its `options`, of a `number` its `min` and `max`')
      .meta({ graphql: 'JSON' }),
  })
  .meta({ id: 'BotModule' });
export type BotModule = z.output<typeof BotModule>;

export const shownModule = (name: BotModuleName, { enabled, config, exempt_roles }: ModuleState): BotModule => ({
  ...{ name, enabled, exempt_roles: [...exempt_roles], config_schema: { ...SCHEMAS.get(name) } },
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
