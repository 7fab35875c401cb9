import type { Queryable } from '../../engines/postgres/port';

/** Condition that the account of this column may have bots of its own. */
export const customBotAllowed = (account: string): string =>
  `not exists (select from custom_bot_overrides x where x.account_id = ${account} and not x.allowed)`;

/** Whether an account may have bots of its own; an operator may forbid it. */
export async function mayHaveBots(db: Pick<Queryable, 'query'>, account_id: string): Promise<boolean> {
  const rows = await db.query(`select 1 as one where ${customBotAllowed('$1::uuid')}`, [account_id], 'custom-bot');
  return rows.length > 0;
}
