import type { Database } from '../../engines/postgres/port';

export interface YoutubeQuotaOptions {
  db: Database;
  /** Units that an app may use in a day. */
  daily_units: number;
}

/** Whether a call may be made. */
export type Granted =
  | { granted: true }
  /** The share allows the call after `wait_ms`; `exhausted`: no connection may call until the next day begins. */
  | { granted: false; wait_ms: number; exhausted: boolean };

export interface YoutubeQuota {
  /** Takes units for a call of this connection, where its share has them. */
  take(client_id: string, connection_id: string, units: number): Promise<Granted>;
  /** Takes units for a call besides reading; false where the day has none left for such calls. */
  spend(client_id: string, units: number): Promise<boolean>;
  /**
   * Takes units that connections leave: those that they could have used until an hour ago, and did not. False where
   * they leave too few.
   */
  spare(client_id: string, units: number): Promise<boolean>;
  /** Milliseconds until the next day when this day's units are used up; null while some are left. */
  usedUp(client_id: string): Promise<number | null>;
  /** Marks the day's quota as used up after Google's refusal, whatever was counted here. */
  exhausted(client_id: string): Promise<void>;
}

/** Minutes without a call after which a connection leaves its share to the others. */
const SHARING_MINUTES = 15;
/** Units that a connection may use at once when it begins, and when a day begins. */
const FIRST_UNITS = 12;
/** Part of a day's units that such beginnings may use in advance; later ones wait for what they earn. */
const AHEAD = 0.25;
const DAY_SECONDS = 86_400;
/** A share saves up no more than it earns in this time. */
const SAVED_SECONDS = 3_600;

/** Part of the day's units that calls besides reading may use. */
const BESIDES_READING = 0.5;

const DAY = `(now() at time zone 'America/Los_Angeles')::date`;
const DAY_BEGAN = `(${DAY}::timestamp at time zone 'America/Los_Angeles')`;
const NEXT_DAY = `((${DAY} + 1)::timestamp at time zone 'America/Los_Angeles')`;

/**
 * Divides the remaining units of the day over its remaining seconds and evenly among the connections that use it: each
 * connection earns its part as time passes, and calls when it has earned the price.
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
        const is_ahead = used >= daily_units * (1 - seconds / DAY_SECONDS + AHEAD);
        const first_units = is_ahead ? 0 : FIRST_UNITS;
        const [share] = await tx.query<{ allowance: number; rate: number }>(
          `with rate as (
             select $3::float8 / $4::float8 / greatest(1, count(*) filter (where connection_id <> $2) + 1) as rate
             from youtube_quota_shares
             where client_id = $1 and at > clock_timestamp() - make_interval(mins => $5)
           )
           insert into youtube_quota_shares as s (client_id, connection_id, allowance, at)
           values ($1, $2, $6, clock_timestamp())
           on conflict (client_id, connection_id) do update set at = excluded.at, allowance = least(
             greatest($6::float8, $8::float8, $7::float8 * (select rate from rate)),
             case when s.at < ${DAY_BEGAN} then $6::float8 else s.allowance end
               + (select rate from rate) * greatest(0, extract(epoch from excluded.at - greatest(s.at, ${DAY_BEGAN}))))
           returning allowance, (select rate from rate) as rate`,
          [client_id, connection_id, left, seconds, SHARING_MINUTES, first_units, SAVED_SECONDS, units],
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
    async spend(client_id, units) {
      const [spent] = await db.query(
        `insert into youtube_quota as q (client_id, day, used, written)
           select $1, ${DAY}, $2::bigint, $2::bigint where $3::float8 * ${BESIDES_READING} >= $2::bigint
         on conflict (client_id, day) do update set used = q.used + $2::bigint, written = q.written + $2::bigint
           where not q.exhausted and q.used + $2::bigint <= $3::float8
             and q.written + $2::bigint <= $3::float8 * ${BESIDES_READING}
         returning 1`,
        [client_id, units, daily_units],
        'youtube-quota-spend',
      );
      return spent !== undefined;
    },
    async spare(client_id, units) {
      const [spared] = await db.query(
        `with spare as (
           select $3::float8 * (extract(epoch from now() - ${DAY_BEGAN}) - ${SAVED_SECONDS}) / ${DAY_SECONDS} as units
         )
         insert into youtube_quota as q (client_id, day, used)
           select $1, ${DAY}, $2::bigint from spare where spare.units >= $2::bigint
         on conflict (client_id, day) do update set used = q.used + $2::bigint
           where not q.exhausted and q.used + $2::bigint <= (select units from spare)
         returning 1`,
        [client_id, units, daily_units],
        'youtube-quota-spare',
      );
      return spared !== undefined;
    },
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
