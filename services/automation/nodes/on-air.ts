import type { Queryable } from '../../../engines/postgres/port';

/** Whether a channel of the account is on air, on one of these platforms or on any (null). */
export async function isOnAir(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  platforms: readonly string[] | null,
): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from channel_status
     where account_id = $1 and is_online and ($2::text[] is null or platform = any($2)) limit 1`,
    [account_id, platforms],
    'automation-on-air',
  );
  return rows.length > 0;
}
