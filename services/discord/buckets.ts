import type { Queryable } from '../../engines/postgres/port';
import type { DiscordBuckets, DiscordRoute } from '../../vendors/discord/port';

/** Seconds after which a call without an answer no longer counts as under way. */
const IN_FLIGHT_SECONDS = 30;
/** Milliseconds for which the first call of a bucket, whose limits are unknown, keeps others waiting. */
const FIRST_MS = 5_000;
/** Milliseconds until the next try where all calls of a bucket are under way. */
const BUSY_MS = 100;
/** Difference of two resets from which they are of different windows, in milliseconds. */
const SAME_WINDOW_MS = 500;
/** Key of the limit of all calls; no bucket of Discord has it. */
const EVERYWHERE = '*';
/** Key of the turns of all calls; no bucket of Discord has it. */
const TURNS = '@';
/**
 * Distance of turns, and number of calls without one, in place of Discord's 50 calls a second: at most 41 turns are in
 * a second, so that calls may be delayed. Source: vendors.md §10.
 */
const TURN_MS = 30;
const WITHOUT_TURN = 8;
/** Longest wait for a turn, in milliseconds; later calls are refused. */
const LONGEST_TURN_MS = 2_000;

const UNDER_WAY = `(case when b.taken_at > now() - interval '${IN_FLIGHT_SECONDS} seconds' then b.in_flight else 0 end)`;
const KEY = `coalesce((select r.bucket from discord_routes r where r.route = $1), $1) || ':' || $2`;
const STOPPED = `exists (select from discord_buckets g where g.key = '${EVERYWHERE}' and g.resets_at > now())`;
/** A window that is over begins again, without the calls that may still arrive. */
const TAKE = `
  insert into discord_buckets as b (key, most, remaining, resets_at, window_ms, in_flight, taken_at)
  select ${KEY}, 1, 0, now() + interval '${FIRST_MS} milliseconds', ${FIRST_MS}, 1, now() where not ${STOPPED}
  on conflict (key) do update set
    remaining = case when b.resets_at <= now() then b.most - 1 - ${UNDER_WAY} else b.remaining - 1 end,
    resets_at = case when b.resets_at <= now() then now() + make_interval(secs => b.window_ms / 1000.0)
      else b.resets_at end,
    in_flight = ${UNDER_WAY} + 1, taken_at = now()
  where (b.resets_at > now() and b.remaining > 0) or (b.resets_at <= now() and b.most > ${UNDER_WAY})
  returning key`;
const WAIT = `
  select greatest(0, ceil(extract(epoch from max(b.resets_at) - now()) * 1000))::float8 as wait_ms
  from discord_buckets b where b.key = '${EVERYWHERE}' or (b.key = ${KEY} and b.learned)`;
/** The row's time is that of the last turn. */
const TURN = `
  insert into discord_buckets as b (key, most, remaining, resets_at, window_ms, in_flight, taken_at)
  values ('${TURNS}', 1, 0, clock_timestamp() + make_interval(secs => ${TURN_MS / 1000}), ${TURN_MS}, 0, now())
  on conflict (key) do update set taken_at = now(),
    resets_at = greatest(b.resets_at, clock_timestamp()) + make_interval(secs => ${TURN_MS / 1000})
  where b.resets_at < clock_timestamp() + make_interval(secs => ${LONGEST_TURN_MS / 1000})
  returning greatest(0,
    ceil(extract(epoch from b.resets_at - clock_timestamp()) * 1000) - ${WITHOUT_TURN * TURN_MS})::float8 as turn_ms`;
const LEARN_ROUTE = `
  insert into discord_routes as r (route, bucket) values ($1, $2)
  on conflict (route) do update set bucket = excluded.bucket where r.bucket <> excluded.bucket`;
/** A later window counts as Discord counts it; in the same one the smaller number holds. */
const LEARN = `
  insert into discord_buckets as b (key, most, remaining, resets_at, window_ms, in_flight, taken_at, learned)
  values ($1, greatest($2::int, 1), $3::int, now() + make_interval(secs => $4::float8 / 1000), greatest($4::int, 1),
    0, now(), true)
  on conflict (key) do update set
    most = excluded.most,
    remaining = case
      when not b.learned or excluded.resets_at > b.resets_at + interval '${SAME_WINDOW_MS} milliseconds'
        then greatest(0, excluded.remaining - greatest(b.in_flight - $5::int, 0))
      else least(b.remaining, excluded.remaining) end,
    resets_at = case when b.learned then greatest(b.resets_at, excluded.resets_at) else excluded.resets_at end,
    window_ms = case when b.learned then greatest(b.window_ms, excluded.window_ms) else excluded.window_ms end,
    in_flight = greatest(b.in_flight - $5::int, 0), learned = true`;
const RELEASE = `
  update discord_buckets b set in_flight = greatest(b.in_flight - 1, 0),
    resets_at = case when b.learned then b.resets_at else now() end
  where b.key = $1`;
const REFUSE = `
  insert into discord_buckets as b (key, most, remaining, resets_at, window_ms, in_flight, taken_at, learned)
  values ($1, 1, 0, now() + make_interval(secs => $2::float8 / 1000), $2::int, 0, now(), true)
  on conflict (key) do update set remaining = 0, in_flight = greatest(b.in_flight - 1, 0),
    resets_at = greatest(b.resets_at, excluded.resets_at), learned = true`;

/** Rate limits of Discord in PostgreSQL: all processes take their calls from the same rows. */
export function createDiscordBuckets(db: Pick<Queryable, 'query'>): DiscordBuckets {
  const of = ({ name, major }: DiscordRoute) => [name, major];
  return {
    async take(route) {
      const [taken] = await db.query<{ key: string }>(TAKE, of(route), 'discord-bucket-take');
      if (taken !== undefined) {
        const [turn] = await db.query<{ turn_ms: number }>(TURN, [], 'discord-turn');
        if (turn !== undefined) return { ...taken, ...turn };
        await db.query(RELEASE, [taken.key], 'discord-bucket-release');
        return { wait_ms: LONGEST_TURN_MS };
      }
      const [row] = await db.query<{ wait_ms: number | null }>(WAIT, of(route), 'discord-bucket-wait');
      return { wait_ms: Math.max(row?.wait_ms ?? 0, BUSY_MS) };
    },
    async answered({ name, major }, { key }, limits) {
      if (limits === null) {
        await db.query(RELEASE, [key], 'discord-bucket-release');
        return;
      }
      const { bucket, limit, remaining, reset_after_ms } = limits;
      const learned = bucket === null ? key : `${bucket}:${major}`;
      if (bucket !== null) await db.query(LEARN_ROUTE, [name, bucket], 'discord-route');
      const own = learned === key ? 1 : 0;
      await db.query(LEARN, [learned, limit, remaining, reset_after_ms, own], 'discord-bucket-learn');
      if (learned !== key) await db.query(RELEASE, [key], 'discord-bucket-release');
    },
    async refused({ key }, retry_after_ms, everywhere) {
      const wait_ms = Math.max(1, Math.min(retry_after_ms, MAX_WAIT_MS));
      await db.query(REFUSE, [everywhere ? EVERYWHERE : key, wait_ms], 'discord-bucket-refuse');
      if (everywhere) await db.query(RELEASE, [key], 'discord-bucket-release');
    },
  };
}
/** Longest wait that an answer may ask for: a day. */
const MAX_WAIT_MS = 86_400_000;

/** Deletes buckets without calls for a day. Returns their number. */
export async function sweepDiscordBuckets(db: Pick<Queryable, 'query'>): Promise<number> {
  const gone = await db.query(
    `delete from discord_buckets where resets_at < now() - interval '1 day' returning 1 as one`,
  );
  return gone.length;
}
