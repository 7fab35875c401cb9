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

/** Whether an account may emit these bytes. They are not counted. */
export async function mayEmitBytes(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  bytes: number,
  now: number,
): Promise<boolean> {
  const most = await limitOf(db, account_id, 'max_emitted_bytes_per_day');
  const [emitted] = await db.query<{ bytes: number }>(
    'select bytes::float8 as bytes from emitted_bytes where account_id = $1 and day >= $2::date',
    [account_id, dayOf(now)],
    'emitted-bytes-of-day',
  );
  return (emitted?.bytes ?? 0) + bytes <= most;
}

/** Counts bytes that an account has emitted, whatever its limit. */
export async function noteEmittedBytes(
  tx: Pick<Queryable, 'query'>,
  account_id: string,
  bytes: number,
  now: number,
): Promise<void> {
  await tx.query(
    `insert into emitted_bytes as e (account_id, day, bytes) values ($1, $2::date, $3)
     on conflict (account_id) do update set day = greatest(e.day, excluded.day),
       bytes = excluded.bytes + case when e.day >= excluded.day then e.bytes else 0 end`,
    [account_id, dayOf(now), bytes],
    'emitted-bytes-note',
  );
}

/** Seconds until the next day of UTC begins. */
export const secondsToNextDay = (now: number): number => Math.ceil((DAY_MS - (now % DAY_MS)) / 1000);
