import { z } from 'zod';
import { adminPermission, get, invalid, notFound, permission, query, whole } from '../../app/operation';
import { BotModule, botModulesOf, moduleName } from '../../views/automation/bot-modules';

export const botModules = query({
  name: 'botModules',
  summary: "Modules of the account's bot",
  rest: get('/v1/bot-modules'),
  pages: whole(),
  guard: [permission('bot-modules:read')],
  input: z.object({}),
  output: BotModule,
  run: ({ caller }, { db }) => botModulesOf(db, caller.account_id),
});

export const botModule = query({
  name: 'botModule',
  summary: "One module of the account's bot",
  rest: get('/v1/bot-modules/{module_name}'),
  guard: [permission('bot-modules:read')],
  input: z.object({ module_name: moduleName }),
  output: BotModule,
  errors: { UNKNOWN_MODULE: invalid('Unknown bot module: {name}') },
  async run({ input: { module_name: name }, caller, refuse }, { db }) {
    const found = (await botModulesOf(db, caller.account_id)).find((module) => module.name === name);
    if (found === undefined) throw refuse('UNKNOWN_MODULE', { name });
    return found;
  },
});

export const adminBotModules = query({
  name: 'adminBotModules',
  summary: "Modules of an account's bot",
  rest: get('/v1/admin/accounts/{account_id}/bot-modules'),
  pages: whole(),
  guard: [adminPermission('bot-modules:read')],
  input: z.object({ account_id: z.uuid() }),
  output: BotModule,
  errors: { ACCOUNT_NOT_FOUND: notFound('Account not found') },
  async run({ input: { account_id }, refuse }, { db }) {
    const rows = await db.query('select 1 as one from accounts where id = $1', [account_id], 'account-is-there');
    if (rows.length === 0) throw refuse('ACCOUNT_NOT_FOUND');
    return botModulesOf(db, account_id);
  },
});
