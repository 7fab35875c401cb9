import { limitOf } from '../../access/authorization/plan-limits';
import type { Queryable } from '../../engines/postgres/port';

const DAY_MS = 86_400_000;

const dayOf = (now: number): string => new Date(now).toISOString().slice(0, 10);

/** Counts bytes against the account's plan limit of the day of UTC. Returns false, and counts none, beyond it. */
export async function countEmittedBytes(
  db: Queryable,
  account_id: string,
  bytes: number,
  now: number,
): Promise<boolean> {
  const most = await limitOf(db, account_id, 'max_emitted_bytes_per_day');
  const counted = await db.query(
    `insert into emitted_bytes as e (account_id, day, bytes) select $1, $2::date, $3::bigint where $3::bigint <= $4
     on conflict (account_id) do update set
       day = greatest(e.day, excluded.day),
       bytes = excluded.bytes + case when e.day >= excluded.day then e.bytes else 0 end
     where excluded.bytes + case when e.day >= excluded.day then e.bytes else 0 end <= $4
     returning 1 as one`,
    [account_id, dayOf(now), bytes, most],
    'emitted-bytes',
  );
  return counted.length > 0;
}

/** Takes back bytes of an event that was not stored, while their day is the account's last one. */
export async function discountEmittedBytes(
  db: Queryable,
  account_id: string,
  bytes: number,
  now: number,
): Promise<void> {
  await db.query(
    'update emitted_bytes set bytes = greatest(0, bytes - $3::bigint) where account_id = $1 and day = $2::date',
    [account_id, dayOf(now), bytes],
    'emitted-bytes-discount',
  );
}

/** Seconds until the next day of UTC begins. */
export const secondsToNextDay = (now: number): number => Math.ceil((DAY_MS - (now % DAY_MS)) / 1000);
