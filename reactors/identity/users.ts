import { z } from 'zod';
import { job } from '../../app/job';
import { reactor, type ReactionTools } from '../../app/reactor';
import { account, ACCOUNT_EVENTS, accountStream } from '../../domain/accounts/accounts';
import { session, sessionStream } from '../../domain/identity/sessions';
import { USER_EVENTS } from '../../domain/identity/users';
import { DomainError } from '../../kernel/errors';

/** Erases the readable data of a deleted user; idempotent. */
export const forgetUser = job({
  name: 'forget-user',
  payload: { user_id: z.uuid() },
  after_unknown: 'repeat',
  run: ({ user_id }, _attempt, { erase }) => erase(user_id),
});

/** The membership has ended, or an operator has made the user its owner meanwhile and must name another one. */
const DONE = new Set(['MEMBER_NOT_FOUND', 'ACCOUNT_NOT_FOUND', 'OWNER_STAYS']);

async function leave(
  user_id: string,
  account_id: string,
  { act, now }: Pick<ReactionTools, 'act' | 'now'>,
): Promise<void> {
  try {
    await act(account, accountStream(account_id), { type: 'account:remove_member', user_id, now });
  } catch (error) {
    if (!(error instanceof DomainError && DONE.has(error.reason))) throw error;
  }
}

/** Records a membership, to end it with its user; ends it at once when its user was deleted meanwhile. */
async function joined(user_id: string, account_id: string, { act, db, keep, now }: ReactionTools): Promise<void> {
  keep('insert into memberships_to_end (user_id, account_id) values ($1, $2) on conflict do nothing', [
    user_id,
    account_id,
  ]);
  const [gone] = await db.query('select 1 from deleted_users where user_id = $1', [user_id], 'deleted-user');
  if (gone !== undefined) await leave(user_id, account_id, { act, now });
}

/**
 * Follows the deletion of a user: ends their memberships, and with them their keys and tokens, ends their sessions, and
 * erases their readable data last.
 */
export const users = reactor({
  name: 'users',
  from: 'beginning',
  events: [USER_EVENTS, ACCOUNT_EVENTS],
  on: {
    'account:created': ({ owner_id, account_id }, tools) => joined(owner_id, account_id, tools),
    'account:member_added': ({ user_id, account_id }, tools) => joined(user_id, account_id, tools),
    'account:member_removed': ({ user_id, account_id }, { keep }) =>
      keep('delete from memberships_to_end where user_id = $1 and account_id = $2', [user_id, account_id]),
    'account:dissolved': ({ account_id }, { keep }) =>
      keep('delete from memberships_to_end where account_id = $1', [account_id]),
    async 'user:deleted'({ user_id, deleted_at }, tools) {
      const { act, db, enqueue, keep, now } = tools;
      const accounts = await db.query<{ account_id: string }>(
        'select account_id from memberships_to_end where user_id = $1 order by account_id',
        [user_id],
        'memberships-to-end',
      );
      for (const { account_id } of accounts) await leave(user_id, account_id, tools);
      const sessions = await db.query<{ id: string }>(
        'select id from user_sessions where user_id = $1 order by id',
        [user_id],
        'sessions-of-deleted',
      );
      for (const { id } of sessions)
        await act(session, sessionStream(id), { type: 'session:end', reason: 'user_deleted', now });
      keep('delete from sessions where user_id = $1', [user_id]);
      keep('insert into deleted_users (user_id, deleted_at) values ($1, $2) on conflict do nothing', [
        user_id,
        deleted_at,
      ]);
      enqueue(forgetUser, { key: user_id, payload: { user_id } });
    },
  },
});
