import { automationsChannel } from '../../../domain/automation/automations';
import type { Queryable } from '../../../engines/postgres/port';
import type { LiveMessages } from '../../../app/services';

/** Reports the number of dropped runs to each account with some, once. Returns the number of accounts. */
export async function reportDropped(db: Pick<Queryable, 'query'>, live: LiveMessages): Promise<number> {
  const rows = await db.query<{ account_id: string; count: number }>(
    `with taken as (
       select account_id, dropped from automation_accounts where dropped > 0 order by account_id for update skip locked
     )
     update automation_accounts a set dropped = 0 from taken t where a.account_id = t.account_id
     returning t.account_id, t.dropped as count`,
  );
  for (const { account_id, count } of rows) {
    const [channel, type] = [automationsChannel(account_id), 'run:dropped'];
    await live.broadcast(channel, { type: 'automation', channel, event_type: type, data: { type, count } });
  }
  return rows.length;
}
