import type { Queryable } from '../../engines/postgres/port';

/** Milliseconds that an answer is cached for all players of this process. */
const HOLDS_MS = 5_000;

/**
 * Accounts with a live channel, on any platform.
 * @returns a check of one account; it throws the database's error
 */
export function accountsOnAir(db: Queryable): (account_id: string) => Promise<boolean> {
  let asked: { accounts: Promise<ReadonlySet<string>>; at: number } | null = null;

  async function look(): Promise<ReadonlySet<string>> {
    const rows = await db.query<{ account_id: string }>(
      'select distinct account_id from channel_status where is_online',
      [],
      'accounts-on-air',
    );
    return new Set(rows.map(({ account_id }) => account_id));
  }

  return async (account_id) => {
    if (asked === null || performance.now() - asked.at > HOLDS_MS) {
      const one = { accounts: look(), at: performance.now() };
      asked = one;
      one.accounts.catch(() => {
        if (asked === one) asked = null;
      });
    }
    return (await asked.accounts).has(account_id);
  };
}
