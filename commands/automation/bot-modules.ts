import { z } from 'zod';
import { adminPermission, command, del, featureDisabled, invalid, notFound } from '../../app/operation';
import { permission, put } from '../../app/operation';
import { actFor, type Act } from '../../app/write-path/act';
import type { Services } from '../../app/services';
import {
  type BotModuleName,
  botModules,
  botModulesStream,
  DEFAULT_MODULE,
  EXEMPT_ROLES,
  isBotModule,
  moduleFlag,
} from '../../domain/automation/bot-modules';
import { MODULE_CONFIGS } from '../../domain/automation/modules/module-configs';
import { DomainError } from '../../kernel/errors';
import { BotModule, moduleName, shownModule } from '../../views/automation/bot-modules';

const errors = {
  UNKNOWN_MODULE: invalid('Unknown bot module: {name}'),
  BAD_CONFIG: invalid('{problem}'),
  MODULE_DISABLED: featureDisabled('Feature not enabled: {flag}'),
};
const Changes = {
  module_name: moduleName,
  enabled: z.boolean().nullish(),
  config: z.record(z.string(), z.unknown()).nullish().describe('Replaced as a whole').meta({ graphql: 'JSON' }),
  exempt_roles: z.array(z.enum(EXEMPT_ROLES)).max(10).nullish(),
};
type Changed = z.output<z.ZodObject<typeof Changes>>;

/** @throws DomainError UNKNOWN_MODULE, MODULE_DISABLED */
async function requireModule({ features }: Services, account_id: string, name: string): Promise<BotModuleName> {
  if (!isBotModule(name)) throw new DomainError('UNKNOWN_MODULE', { name });
  const flag = moduleFlag(name);
  if (!(await features.enabled(flag, account_id))) throw new DomainError('MODULE_DISABLED', { flag });
  return name;
}

/** Config as JSON text. @throws DomainError BAD_CONFIG */
function configOf(name: BotModuleName, config: Record<string, unknown>): string {
  const { success, data, error } = MODULE_CONFIGS[name].safeParse(config);
  if (success) return JSON.stringify(data);
  const [issue] = error.issues;
  throw new DomainError('BAD_CONFIG', { problem: `config.${issue!.path.join('.')}: ${issue!.message}` });
}

async function configure(
  act: Act,
  services: Services,
  account_id: string,
  { module_name: asked, enabled, config, exempt_roles }: Changed,
): Promise<BotModule> {
  const module_name = await requireModule(services, account_id, asked);
  const { state } = await act(botModules, botModulesStream(account_id), {
    type: 'bot_module:configure',
    ...{ account_id, module_name, enabled: enabled ?? undefined },
    config: config ? configOf(module_name, config) : undefined,
    exempt_roles: exempt_roles ? EXEMPT_ROLES.filter((role) => exempt_roles.includes(role)) : undefined,
  });
  return shownModule(module_name, state.get(module_name) ?? DEFAULT_MODULE);
}

export const updateBotModule = command({
  name: 'updateBotModule',
  summary: "Configures a module of the account's bot; absent members stay",
  rest: put('/v1/bot-modules/{module_name}'),
  guard: [permission('bot-modules:edit')],
  input: z.object(Changes),
  output: BotModule,
  errors,
  run: ({ input, caller: { account_id }, act }, services) => configure(act, services, account_id, input),
});

export const deleteBotModule = command({
  name: 'deleteBotModule',
  summary: "Gives a module of the account's bot its defaults",
  rest: del('/v1/bot-modules/{module_name}'),
  guard: [permission('bot-modules:edit')],
  input: z.object({ module_name: moduleName }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteBotModuleResult' }),
  errors: { UNKNOWN_MODULE: errors.UNKNOWN_MODULE, MODULE_DISABLED: errors.MODULE_DISABLED },
  async run({ input, caller: { account_id }, act }, services) {
    const module_name = await requireModule(services, account_id, input.module_name);
    await act(botModules, botModulesStream(account_id), { type: 'bot_module:reset', account_id, module_name });
    return { success: true };
  },
});

export const adminUpdateBotModule = command({
  name: 'adminUpdateBotModule',
  summary: "Configures a module of an account's bot; absent members stay",
  rest: put('/v1/admin/accounts/{account_id}/bot-modules/{module_name}'),
  guard: [adminPermission('bot-modules:edit')],
  input: z.object({ account_id: z.uuid(), ...Changes }),
  output: BotModule,
  errors: { ...errors, ACCOUNT_NOT_FOUND: notFound('Account not found') },
  async run({ input: { account_id, ...input }, caller, context, refuse }, services) {
    const rows = await services.db.query(
      'select 1 as one from accounts where id = $1',
      [account_id],
      'account-is-there',
    );
    if (rows.length === 0) throw refuse('ACCOUNT_NOT_FOUND');
    // The event is the account's.
    const act = actFor({ caller: { ...caller, account_id }, context }, services);
    return configure(act, services, account_id, input);
  },
});
