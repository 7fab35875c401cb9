import { z } from 'zod';
import { adminPermission, feature, get, notFound, numbered, permission, query, rowsOf } from '../../app/operation';
import { BotCommand, botCommandOf, OF_ACCOUNT, OF_SCOPE } from '../../views/automation/bot-commands';

const BOTS = feature('feature:bots');
const ORDER = 'created_at, id';

export const botCommands = query({
  name: 'botCommands',
  summary: "The account's commands and those of all accounts, oldest first",
  rest: get('/v1/bot-commands'),
  pages: numbered('PaginatedBotCommandResult'),
  guard: [BOTS, permission('bot-commands:read')],
  input: z.object({}),
  output: BotCommand,
  run: ({ caller, page }, { db }) =>
    rowsOf(db, page, BotCommand, { from: OF_ACCOUNT, order: ORDER, values: [caller.account_id] }),
});

export const botCommand = query({
  name: 'botCommand',
  summary: 'One command of the account or of all accounts',
  rest: get('/v1/bot-commands/{id}'),
  guard: [BOTS, permission('bot-commands:read')],
  input: z.object({ id: z.uuid() }),
  output: BotCommand,
  errors: { COMMAND_NOT_FOUND: notFound('Command not found') },
  async run({ input: { id }, caller, refuse }, { db }) {
    const found = await botCommandOf(db, caller.account_id, id);
    if (found === undefined) throw refuse('COMMAND_NOT_FOUND');
    return found;
  },
});

const SCOPES = ['global', 'account'] as const;

export const adminBotCommands = query({
  name: 'adminBotCommands',
  summary: 'Commands of all accounts, or of single accounts, oldest first',
  rest: get('/v1/admin/bot-commands'),
  pages: numbered('PaginatedBotCommandResult'),
  guard: [adminPermission('bot-commands:read')],
  input: z.object({
    scope: z.enum(SCOPES).nullish().describe('`global` (default): commands of all accounts; `account`: of single ones'),
  }),
  output: BotCommand,
  run: ({ input, page }, { db }) =>
    rowsOf(db, page, BotCommand, { from: OF_SCOPE, order: ORDER, values: [input.scope !== 'account'] }),
});
