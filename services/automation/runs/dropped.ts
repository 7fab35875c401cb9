import { automationsChannel } from '../../../domain/automation/automations';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { ChannelMessage } from '../../../kernel/projection';

type Publish = (tx: Queryable, messages: readonly ChannelMessage[]) => Promise<unknown>;

/**
 * Reports the number of dropped runs to each account with some, in the transaction that resets the numbers. Returns the
 * number of accounts.
 */
export function reportDropped(db: Pick<Database, 'transaction'>, publish: Publish): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await tx.query<{ account_id: string; count: number }>(
      `with taken as (
         select account_id, dropped from automation_accounts where dropped > 0 order by account_id
         for update skip locked
       )
       update automation_accounts a set dropped = 0 from taken t where a.account_id = t.account_id
       returning t.account_id, t.dropped as count`,
    );
    const type = 'run:dropped';
    await publish(
      tx,
      rows.map(({ account_id, count }) => ({
        ...{ channel: automationsChannel(account_id), event_type: type, data: JSON.stringify({ type, count }) },
      })),
    );
    return rows.length;
  });
}
