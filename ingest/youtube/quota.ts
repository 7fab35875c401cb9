import type { Database } from '../../engines/postgres/port';

export interface YoutubeQuotaOptions {
  db: Database;
  /** Units that an app may use in a day. */
  daily_units: number;
}

/** Whether a call may be made. */
export type Granted =
  | { granted: true }
  /** Its share allows the call after so long; `exhausted`: nobody may call any more until the next day begins. */
  | { granted: false; wait_ms: number; exhausted: boolean };

export interface YoutubeQuota {
  /** Takes units for a call of this connection, where its share has them. */
  take(client_id: string, connection_id: string, units: number): Promise<Granted>;
  /** Milliseconds until the next day begins, where nothing is left of this one; null where something is. */
  usedUp(client_id: string): Promise<number | null>;
  /** Google said that the day's quota is used up, whatever was counted here. */
  exhausted(client_id: string): Promise<void>;
}

/** A connection that asked for nothing for so long leaves its share to the others. */
const SHARING_MINUTES = 15;
/** What a connection may use at once when it begins. */
const FIRST_UNITS = 12;
/** A share saves up no more than it earns in this time. */
const SAVED_SECONDS = 3_600;

const DAY = `(now() at time zone 'America/Los_Angeles')::date`;
const NEXT_DAY = `((${DAY} + 1)::timestamp at time zone 'America/Los_Angeles')`;

/**
 * What is left of the day's units, spread over its remaining seconds and divided evenly among the connections that use
 * it: each earns its part as time passes, and calls when it has earned the price.
 */
export function createYoutubeQuota({ db, daily_units }: YoutubeQuotaOptions): YoutubeQuota {
  return {
    take: (client_id, connection_id, units) =>
      db.transaction(async (tx) => {
        const [day] = await tx.query<{ used: number; exhausted: boolean; seconds: number }>(
          `insert into youtube_quota as q (client_id, day) values ($1, ${DAY})
           on conflict (client_id, day) do update set used = q.used
           returning used::float8 as used, exhausted,
             greatest(extract(epoch from ${NEXT_DAY} - clock_timestamp()), 1)::float8 as seconds`,
          [client_id],
        );
        const { used, exhausted, seconds } = day!;
        const left = daily_units - used;
        if (exhausted || left < units) return { granted: false, wait_ms: seconds * 1000, exhausted: true };
        const [share] = await tx.query<{ allowance: number; rate: number }>(
          `with rate as (
             select $3::float8 / $4::float8 / greatest(1, count(*) filter (where connection_id <> $2) + 1) as rate
             from youtube_quota_shares
             where client_id = $1 and at > clock_timestamp() - make_interval(mins => $5)
           )
           insert into youtube_quota_shares as s (client_id, connection_id, allowance, at)
           values ($1, $2, $6, clock_timestamp())
           on conflict (client_id, connection_id) do update set at = excluded.at, allowance = least(
             greatest($6::float8, $7::float8 * (select rate from rate)),
             s.allowance + (select rate from rate) * greatest(0, extract(epoch from excluded.at - s.at)))
           returning allowance, (select rate from rate) as rate`,
          [client_id, connection_id, left, seconds, SHARING_MINUTES, FIRST_UNITS, SAVED_SECONDS],
        );
        const { allowance, rate } = share!;
        if (allowance < units) {
          return { granted: false, wait_ms: ((units - allowance) / rate) * 1000, exhausted: false };
        }
        await tx.query(
          'update youtube_quota_shares set allowance = allowance - $3 where client_id = $1 and connection_id = $2',
          [client_id, connection_id, units],
        );
        await tx.query(`update youtube_quota set used = used + $2 where client_id = $1 and day = ${DAY}`, [
          client_id,
          units,
        ]);
        return { granted: true };
      }),
    async usedUp(client_id) {
      const [day] = await db.query<{ ms: number }>(
        `select (extract(epoch from ${NEXT_DAY} - now()) * 1000)::float8 as ms from youtube_quota
         where client_id = $1 and day = ${DAY} and (exhausted or used >= $2)`,
        [client_id, daily_units],
        'youtube-quota-used-up',
      );
      return day?.ms ?? null;
    },
    async exhausted(client_id) {
      await db.query(
        `insert into youtube_quota (client_id, day, exhausted) values ($1, ${DAY}, true)
         on conflict (client_id, day) do update set exhausted = true`,
        [client_id],
      );
    },
  };
}
