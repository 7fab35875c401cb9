import type { Settings } from '../../kernel/settings/settings';
import type { Tokens } from '../../access/authentication/tokens/jwt';
import { actFor } from '../../app/write-path/act';
import type { SessionTokens } from '../../access/authentication/tokens/session-tokens';
import { openSession } from '../../services/identity/sessions';
import { requireAccount } from './accounts';
import { AdminError, asOperator, OPERATOR, type AdminServices } from './shared/operator';
import { requireUser } from './users';

/**
 * Opens a session for a user as a login does, on an account of theirs. Default account: the user's only one, or none.
 * @throws AdminError
 */
export async function openUserSession(
  services: AdminServices & { tokens: Tokens; settings: Settings },
  user_id: string,
  wanted?: string,
): Promise<SessionTokens & { account_id: string | null }> {
  await requireUser(services, user_id);
  const account_id = wanted ?? (await onlyAccountOf(services, user_id));
  if (account_id !== null) {
    const { members } = await requireAccount(services, account_id);
    if (!members.has(user_id)) throw new AdminError(`user ${user_id} is no member of account ${account_id}`);
  }
  const operator = asOperator(OPERATOR);
  const acting = { act: actFor(operator, services), context: operator.context };
  return { ...(await openSession(acting, services, { user_id, account_id, provider: null })), account_id };
}

async function onlyAccountOf({ db }: AdminServices, user_id: string): Promise<string | null> {
  const rows = await db.query<{ account_id: string }>(
    'select account_id from account_members where user_id = $1 order by account_id',
    [user_id],
  );
  if (rows.length <= 1) return rows[0]?.account_id ?? null;
  const ids = rows.map(({ account_id }) => account_id).join(', ');
  throw new AdminError(`user ${user_id} belongs to several accounts, name one by --account: ${ids}`);
}
