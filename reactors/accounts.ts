import { reactor } from '../access/reactor';
import { moveSessions } from '../access/sessions';
import { ACCOUNT_EVENTS } from '../domain/accounts';
import { connections, connectionsStream, connectionReservations } from '../domain/connections';

/**
 * What is left of a dissolved account: its shops may be connected by others, and no session points at it. Source: spec
 * extra-facts §3.
 */
export const dissolvedAccounts = reactor({
  name: 'accounts',
  from: 'beginning',
  events: [ACCOUNT_EVENTS],
  on: {
    async 'account:dissolved'({ account_id }, { act, db, now }) {
      await act(
        connections,
        connectionsStream(account_id),
        { type: 'connection:disconnect_all', account_id, now },
        { reservations: connectionReservations },
      );
      await moveSessions(act, db, { account_id }, null);
    },
  },
});
