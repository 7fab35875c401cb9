import { z } from 'zod';
import { Account, ACCOUNT_NOT_FOUND, accountOf } from '../../views/accounts/accounts';
import { CONNECTION_NOT_FOUND, disconnect, ConnectionResult } from '../../services/connections/disconnecting';
import { adminPermission, command, del, notFound, put } from '../../app/operation';
import { load } from '../../app/write-path/aggregate-cache';
import { account, accountStream } from '../../domain/accounts/accounts';
import { user, userStream } from '../../domain/identity/users';

const of_account = z.object({ account_id: z.uuid(), id: z.uuid() });

/** Source: spec extra-facts §27. */
export const adminDisconnectChannelConnection = command({
  name: 'adminDisconnectChannelConnection',
  summary: 'Takes a channel off an account',
  rest: del('/v1/admin/accounts/{account_id}/channel-connections/{id}'),
  guard: [adminPermission('accounts:edit')],
  input: of_account,
  output: ConnectionResult,
  errors: CONNECTION_NOT_FOUND,
  async run({ input: { account_id, id }, act }, services) {
    await disconnect(act, services, { account_id, connection_id: id, kind: 'channel' });
    return { success: true };
  },
});

/** Source: spec doc1 §5.11, extra-facts §27. */
export const adminDisconnectBotConnection = command({
  name: 'adminDisconnectBotConnection',
  summary: 'Takes a bot off an account',
  rest: del('/v1/admin/accounts/{account_id}/bot-connections/{id}'),
  guard: [adminPermission('bot-connections:delete')],
  input: of_account,
  output: ConnectionResult,
  errors: CONNECTION_NOT_FOUND,
  async run({ input: { account_id, id }, act }, services) {
    await disconnect(act, services, { account_id, connection_id: id, kind: 'bot' });
    return { success: true };
  },
});

/** Source: spec extra-facts §27. */
export const adminSetPrimaryLoginConnection = command({
  name: 'adminSetPrimaryLoginConnection',
  summary: "Says which of its owner's logins supplies the picture of an account",
  rest: put('/v1/admin/accounts/{account_id}/primary-connection'),
  guard: [adminPermission('users:edit')],
  input: z.object({
    account_id: z.uuid(),
    login_connection_id: z.uuid().nullable().describe("Null: the owner's picture"),
  }),
  output: Account,
  errors: { ...ACCOUNT_NOT_FOUND, LOGIN_NOT_FOUND: notFound('Login connection not found') },
  async run({ input: { account_id, login_connection_id }, act, refuse }, { db, events }) {
    const owned = await load(events, account, accountStream(account_id));
    const owner_id = owned?.state.owner_id;
    if (!owner_id || owned?.state.dissolved) throw refuse('ACCOUNT_NOT_FOUND');
    const known = await load(events, user, userStream(owner_id));
    if (login_connection_id !== null && known?.state.logins.has(login_connection_id) !== true)
      throw refuse('LOGIN_NOT_FOUND');
    const set = { type: 'account:set_primary_login', login_connection_id, user_id: owner_id } as const;
    await act(account, accountStream(account_id), set);
    const found = await accountOf(db, account_id);
    if (found === null) throw refuse('ACCOUNT_NOT_FOUND');
    return found;
  },
});
