import { reactor, type ReactionTools } from '../../app/reactor';
import { account, ACCOUNT_EVENTS, accountStream } from '../../domain/accounts/accounts';
import { USER_EVENTS } from '../../domain/identity/users';
import { DomainError } from '../../kernel/errors';

interface Place {
  account_id: string;
  login_connection_id: string;
}

/**
 * Ends the assignments of a removed login on every account, also those assigned concurrently. Assignments are recorded
 * in the order of the log, however late this runs.
 */
export const lostLogins = reactor({
  name: 'login-assignments',
  from: 'beginning',
  events: [USER_EVENTS, ACCOUNT_EVENTS],
  on: {
    'account:login_assigned': (assigned, tools) => placed(assigned, tools),
    'account:primary_login_set': ({ account_id, login_connection_id }, tools) =>
      login_connection_id === null ? undefined : placed({ account_id, login_connection_id }, tools),
    'account:dissolved': ({ account_id }, { keep }) =>
      keep('delete from login_places where account_id = $1', [account_id]),
    async 'user:login_disconnected'({ user_id, login_connection_id }, tools) {
      const { db, keep } = tools;
      const places = await db.query<{ account_id: string }>(
        'select account_id from login_places where login_connection_id = $1 order by account_id',
        [login_connection_id],
        'login-places',
      );
      for (const { account_id } of places) await forget({ account_id, login_connection_id }, user_id, tools);
      keep('delete from login_places where login_connection_id = $1', [login_connection_id]);
      keep('insert into lost_logins (login_connection_id, user_id) values ($1, $2) on conflict do nothing', [
        login_connection_id,
        user_id,
      ]);
    },
  },
});

async function placed({ account_id, login_connection_id }: Place, tools: ReactionTools): Promise<void> {
  const [lost] = await tools.db.query<{ user_id: string }>(
    'select user_id from lost_logins where login_connection_id = $1',
    [login_connection_id],
    'lost-login',
  );
  if (lost !== undefined) await forget({ account_id, login_connection_id }, lost.user_id, tools);
  else
    tools.keep('insert into login_places (login_connection_id, account_id) values ($1, $2) on conflict do nothing', [
      login_connection_id,
      account_id,
    ]);
}

async function forget(
  { account_id, login_connection_id }: Place,
  user_id: string,
  { act, now }: Pick<ReactionTools, 'act' | 'now'>,
): Promise<void> {
  try {
    await act(account, accountStream(account_id), {
      type: 'account:forget_login',
      ...{ login_connection_id, user_id, now },
    });
  } catch (error) {
    // The account was dissolved meanwhile.
    if (!(error instanceof DomainError && error.reason === 'ACCOUNT_NOT_FOUND')) throw error;
  }
}
