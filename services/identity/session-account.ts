import { session, sessionStream } from '../../domain/identity/sessions';
import type { Queryable } from '../../engines/postgres/port';
import type { Caller } from '../../access/authentication/caller';
import {
  backfillSessionStream,
  ACTIVE_SESSION_COLUMNS,
  type ActiveSession,
  findActiveSession,
} from './active-sessions';
import { type Signing, signAccess } from '../../access/authentication/tokens/session-tokens';
import type { Act } from '../../app/write-path/act';
import type { Acting } from './sessions';

const PAGE = 500;
const COLUMNS = { session_id: 's.id', user_id: 's.user_id', account_id: 'u.active_account_id' } as const;

/** Selects one session, all of a user, or all on an account. */
export type SessionFilter = { session_id: string } | { user_id: string } | { account_id: string };

/** Moves sessions to another account, or to none, from their next refresh on. */
export async function setActiveAccount(
  act: Act,
  db: Pick<Queryable, 'query'>,
  which: SessionFilter,
  account_id: string | null,
): Promise<void> {
  const [[kind, value]] = Object.entries(which) as [[keyof typeof COLUMNS, string]];
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const rows = await db.query<{ id: string; adopted: boolean; ends_at: number } & ActiveSession>(
      `select s.id, u.id is not null as adopted, ${ACTIVE_SESSION_COLUMNS} from sessions s left join user_sessions u on u.id = s.id
       where ${COLUMNS[kind]} = $1 and s.id > $2 and s.expires_at > now() order by s.id limit ${PAGE}`,
      [value, after],
      `sessions-to-move-${kind}`,
    );
    for (const row of rows) {
      if (!row.adopted) await backfillSessionStream(act, row.id, row, account_id);
      await act(session, sessionStream(row.id), { type: 'session:switch_account', active_account_id: account_id });
    }
    if (rows.length < PAGE) return;
    after = rows[rows.length - 1]!.id;
  }
}

/**
 * {@link setActiveAccount}, and a fresh access token on that account for the caller; null for a caller without a
 * session (a key).
 */
export async function setActiveAccountAndReissueToken(
  { act, caller, context }: Acting & { caller: Pick<Caller, 'kind' | 'credential_id' | 'user_id'> },
  services: Signing & { db: Pick<Queryable, 'query'> },
  which: SessionFilter,
  account_id: string | null,
): Promise<string | null> {
  await setActiveAccount(act, services.db, which, account_id);
  const { kind, credential_id: session_id, user_id } = caller;
  if (kind !== 'jwt' || session_id === null || user_id === null) return null;
  const living = await findActiveSession(services.db, session_id, context.now);
  if (living === null) return null;
  return (await signAccess(services, { session_id, user_id, account_id, ends_at: living.ends_at }, context.now)).token;
}
