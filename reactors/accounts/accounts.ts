import { reactor, type ReactionTools } from '../../app/reactor';
import { setActiveAccount } from '../../services/identity/session-account';
import { ACCOUNT_APP_EVENTS } from '../../domain/connections/account-apps';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { connectionReservations } from '../../domain/connections/connection-reservations';
import { CONNECTION_EVENTS, connections, connectionsStream } from '../../domain/connections/connections';
import { SE_TOKEN_EVENTS, seTokens, seTokensStream } from '../../domain/connections/se-tokens';

interface OfAccount {
  account_id: string;
}

const disconnectAll = ({ account_id }: OfAccount, { act, now }: ReactionTools) =>
  act(
    connections,
    connectionsStream(account_id),
    { type: 'connection:disconnect_all', account_id, now },
    { reservations: connectionReservations },
  );

/**
 * Removes what an account received from a request that was concurrent with its dissolution, since nobody is left who
 * could.
 */
const unlessDissolved =
  (take: (event: OfAccount, tools: ReactionTools) => unknown) => async (event: OfAccount, tools: ReactionTools) => {
    const { account_id } = event;
    const gone = 'select 1 from dissolved_accounts where account_id = $1';
    if ((await tools.db.query(gone, [account_id], 'account-dissolved')).length > 0) await take(event, tools);
  };
const disconnectLate = unlessDissolved(disconnectAll);

/**
 * Cleans up after a dissolved account: frees its shops for others, and moves sessions off it. Source: spec extra-facts
 * §3.
 */
export const dissolvedAccounts = reactor({
  name: 'accounts',
  from: 'beginning',
  events: [ACCOUNT_EVENTS, CONNECTION_EVENTS, SE_TOKEN_EVENTS, ACCOUNT_APP_EVENTS],
  on: {
    async 'account:dissolved'(event, tools) {
      const { account_id } = event;
      tools.keep('insert into dissolved_accounts (account_id) values ($1) on conflict do nothing', [account_id]);
      await disconnectAll(event, tools);
      await setActiveAccount(tools.act, tools.db, { account_id }, null);
    },
    'connection:channel_connected': disconnectLate,
    'connection:bot_connected': disconnectLate,
    'connection:shop_connected': disconnectLate,
    'se_token:saved': unlessDissolved(({ account_id }, { act, now }) =>
      act(seTokens, seTokensStream(account_id), { type: 'se_token:delete_all', account_id, now }),
    ),
    'account_app:set': unlessDissolved(({ account_id }, { keep }) =>
      keep(`delete from app_secrets where split_part(id, '/', 1) = $1`, [account_id]),
    ),
  },
});
