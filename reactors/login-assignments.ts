import { reactor } from '../access/reactor';
import { account, ACCOUNT_EVENTS, accountStream } from '../domain/accounts';
import { USER_EVENTS } from '../domain/users';
import { DomainError } from '../kernel/errors';

/**
 * A login that is taken away is acted with on no account any more. Where it was is remembered in the order of the log,
 * however late this runs.
 */
export const lostLogins = reactor({
  name: 'login-assignments',
  from: 'beginning',
  events: [USER_EVENTS, ACCOUNT_EVENTS],
  on: {
    'account:login_assigned': ({ account_id, login_connection_id }, { keep }) =>
      keep(...remembered(account_id, login_connection_id)),
    'account:primary_login_set': ({ account_id, login_connection_id }, { keep }) =>
      login_connection_id === null ? undefined : keep(...remembered(account_id, login_connection_id)),
    'account:dissolved': ({ account_id }, { keep }) =>
      keep('delete from login_places where account_id = $1', [account_id]),
    async 'user:login_disconnected'({ user_id, login_connection_id }, { act, db, keep, now }) {
      const places = await db.query<{ account_id: string }>(
        'select account_id from login_places where login_connection_id = $1 order by account_id',
        [login_connection_id],
        'login-places',
      );
      for (const { account_id } of places) {
        try {
          await act(account, accountStream(account_id), {
            type: 'account:forget_login',
            ...{ login_connection_id, user_id, now },
          });
        } catch (error) {
          // It was dissolved meanwhile.
          if (!(error instanceof DomainError && error.reason === 'ACCOUNT_NOT_FOUND')) throw error;
        }
      }
      keep('delete from login_places where login_connection_id = $1', [login_connection_id]);
    },
  },
});

const remembered = (account_id: string, login_connection_id: string): [text: string, values: string[]] => [
  'insert into login_places (login_connection_id, account_id) values ($1, $2) on conflict do nothing',
  [login_connection_id, account_id],
];
