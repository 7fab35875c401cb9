import { z } from 'zod';
import { ACCOUNT_NOT_FOUND } from '../../views/accounts/accounts';
import { adminAccountOf } from '../../views/operators/admin-accounts';
import {
  BotConnection,
  botConnectionsOf,
  ChannelConnection,
  channelConnectionsOf,
} from '../../views/connections/connections';
import { adminPermission, get, query } from '../../app/operation';

/** Source: spec extra-facts §27. */
export const adminAccountConnections = query({
  name: 'adminAccountConnections',
  summary: 'Channels and bots of an account, whether their platforms are offered or not',
  rest: get('/v1/admin/accounts/{account_id}/connections'),
  guard: [adminPermission('accounts:read')],
  input: z.object({ account_id: z.uuid() }),
  output: z
    .object({ channel_connections: z.array(ChannelConnection), bot_connections: z.array(BotConnection) })
    .meta({ id: 'AdminAccountConnections' }),
  errors: ACCOUNT_NOT_FOUND,
  async run({ input: { account_id }, refuse }, services) {
    if ((await adminAccountOf(services.db, account_id)) === null) throw refuse('ACCOUNT_NOT_FOUND');
    return {
      channel_connections: await channelConnectionsOf(services, account_id),
      bot_connections: await botConnectionsOf(services, account_id),
    };
  },
});
