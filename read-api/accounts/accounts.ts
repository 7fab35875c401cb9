import { z } from 'zod';
import { Account, accountOf, AccountMembership, ACCOUNT_NOT_FOUND, accountsOf } from '../../views/accounts/accounts';
import {
  BotConnection,
  botConnectionsOf,
  ChannelConnection,
  channelConnectionsOf,
} from '../../views/connections/connections';
import { offered } from '../../views/connections/connections';
import { hasPermission } from '../../access/authorization/permission-check';
import { account as onAccount, firstParty, get, permission, query, whole } from '../../app/operation';

export const accounts = query({
  name: 'accounts',
  summary: 'The accounts that the caller is a member of, with their role on each',
  rest: get('/v1/accounts'),
  pages: whole(),
  guard: [firstParty],
  input: z.object({}),
  output: AccountMembership,
  run: ({ caller }, { db }) => accountsOf(db, caller.user_id),
});

/** Source: spec doc2 §4.3. */
const AccountWithConnections = Account.extend({
  channel_connections: z
    .array(ChannelConnection)
    .describe('Of platforms that are offered; empty for who may not read connections'),
  bot_connections: z
    .array(BotConnection)
    .describe('Of platforms that are offered; empty for who may not read bot connections'),
}).meta({ id: 'AccountWithConnections' });

export const account = query({
  name: 'account',
  // Source: spec extra-facts §3.
  summary: 'One account',
  rest: get('/v1/accounts/{id}'),
  guard: [onAccount('id'), permission('account:read')],
  input: z.object({ id: z.uuid() }),
  output: AccountWithConnections,
  errors: ACCOUNT_NOT_FOUND,
  async run({ caller, refuse }, services) {
    const { account_id } = caller;
    const found = await accountOf(services.db, account_id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    const may = (permission: string) => hasPermission(caller, caller.permissions, permission);
    const [channels, bots] = await Promise.all([
      may('connections:read') ? channelConnectionsOf(services, account_id) : [],
      may('bot-connections:read') ? botConnectionsOf(services, account_id) : [],
    ]);
    return {
      ...found,
      channel_connections: await offered(services, 'channel', account_id, channels),
      bot_connections: await offered(services, 'bot', account_id, bots),
    };
  },
});
