import { EVENT_COLUMNS, eventRow, type EventRow } from '../../domain/events/events';
import type { Queryable } from '../../engines/postgres/port';
import { Parameters } from '../../kernel/sql';

/** Filter of events. Instants are RFC 3339 UTC: `from` is included, `to` is not. */
export interface EventQuery {
  account_id: string;
  types: readonly string[] | null;
  platforms: readonly string[] | null;
  user_id: string | null;
  from: string | null;
  to: string | null;
  limit: number;
  offset: number;
  max_bytes: number;
}

export interface FoundEvents {
  rows: EventRow[];
  total: number;
  partial?: boolean;
  /** The page was cut at `max_bytes` and has more rows. */
  cut: boolean;
}

/** Newest first. */
const NEWEST = 'order by created_at desc, id desc';

/**
 * Rows of a page up to the one that reaches `max_bytes` (a parameter). Only compressed values are decompressed for
 * their size, so an ordinary page costs nothing more.
 */
export const withinBytes = (page: string, max_bytes: string): string => `
  select * from (
    select page.*, sum(
      case when pg_column_compression(raw) is null then pg_column_size(raw) else octet_length(raw::text) end
    ) over (${NEWEST} rows between unbounded preceding and 1 preceding) as bytes_before from (${page}) page
  ) page where bytes_before is null or bytes_before < ${max_bytes}`;

/**
 * Page of events, newest first, with the exact total, from one statement and so from one snapshot. The cost depends on
 * the page and the days it lies in, not on the account's size; with `user_id` on that person's events.
 */
export async function eventsPage(db: Queryable, filter: EventQuery): Promise<FoundEvents> {
  const built = filter.user_id === null ? byCounters(filter) : byUser(filter, filter.user_id);
  const found = await db.query(built.text, built.values, built.name);
  const total: number = found[0]?.total ?? 0;
  // An empty page is one row with only the total.
  const rows = (found[0]?.id ?? null) === null ? [] : found.map((row) => eventRow(row as EventRow));
  return { rows, total, cut: rows.length > 0 && rows.length < Math.min(filter.limit, total - filter.offset) };
}

interface Built {
  name: string;
  text: string;
  values: unknown[];
}

/**
 * Uses the counters to find the days of the page, so that only those days (and their partitions) are read, however deep
 * the page is, and the (type, platform) pairs that occur there, so that each pair reads its newest rows from the index
 * and the page is their merge. First and last days that the range cuts are counted in the log itself.
 */
function byCounters(filter: EventQuery): Built {
  const p = new Parameters();
  const account = p.add(filter.account_id);
  const limit = `${p.add(filter.limit)}::bigint`;
  const offset = `${p.add(filter.offset)}::bigint`;
  const bytes = p.add(filter.max_bytes);
  const pairs = pairConditions(filter, p);
  const days = splitByDays(filter, p);
  const cut = days.cut.map(
    ({ day, from, to }) => `
      union all
      select type, platform, ${day}, count(*) from platform_event_logs
      where account_id = ${account} and created_at >= ${from} and created_at < ${to}${pairs.sql}
        group by type, platform`,
  );
  const filtered = pairs.sql !== '';
  const lower = days.from ? `greatest(${days.from}, l.lo)` : 'l.lo';
  const upper = days.to ? `least(${days.to}, l.hi)` : 'l.hi';
  const inWindow = `created_at >= (select ${lower} from place l) and created_at < (select ${upper} from place l)`;
  const page = filtered
    ? `select rows.* from (select distinct type, platform from matching, place
         where day between first_day and last_day) pair
       cross join lateral (
         select ${EVENT_COLUMNS} from platform_event_logs e
         where e.account_id = ${account} and e.type = pair.type and e.platform = pair.platform and ${inWindow}
         ${NEWEST} limit ${limit} + (select skip from place)
       ) rows
       ${NEWEST} limit ${limit} offset (select skip from place)`
    : `select ${EVENT_COLUMNS} from platform_event_logs where account_id = ${account} and ${inWindow}
       ${NEWEST} limit ${limit} offset (select skip from place)`;
  return {
    name: `events-${pairs.shape}${days.shape}`,
    values: p.values,
    text: `
    with matching as materialized (
      select type, platform, day, count from event_log_counters
      where account_id = ${account}${days.whole}${pairs.sql}${cut.join('')}
    ), per_day as materialized (
      select day, sum(count) as n, sum(sum(count)) over (order by day desc) as upto from matching group by day
    ), place as materialized (
      -- Behind the last page there is no day: the window must be empty, and least() skips nulls.
      select *, first_day::timestamp at time zone 'UTC' as lo,
             coalesce((last_day + 1)::timestamp at time zone 'UTC', '-infinity') as hi
      from (
        select coalesce(sum(n), 0)::bigint as total,
               coalesce(max(day) filter (where upto >= ${offset} + ${limit}), min(day)) as first_day,
               max(day) filter (where upto > ${offset}) as last_day,
               ${offset} - coalesce(max(upto) filter (where upto <= ${offset}), 0)::bigint as skip
        from per_day
      ) bounds
    )
    select place.total, page.* from place left join (${withinBytes(page, bytes)}) page on true
    order by page.created_at desc, page.id desc`,
  };
}

/** Counts a person's events in their own index, which includes type and platform: they are few next to an account's. */
function byUser(filter: EventQuery, user_id: string): Built {
  const p = new Parameters();
  const account = p.add(filter.account_id);
  const limit = p.add(filter.limit);
  const offset = p.add(filter.offset);
  const bytes = p.add(filter.max_bytes);
  const user = p.add(user_id);
  const pairs = pairConditions(filter, p);
  const from = filter.from ? ` and created_at >= ${p.add(filter.from)}` : '';
  const to = filter.to ? ` and created_at < ${p.add(filter.to)}` : '';
  const where = `account_id = ${account} and user_id = ${user}${pairs.sql}${from}${to}`;
  return {
    name: `events-user-${pairs.shape}${from && 'f'}${to && 't'}`.replace(/[^a-z-]/g, ''),
    values: p.values,
    text: `
    select counted.total, page.*
    from (select count(*) as total from platform_event_logs where ${where}) counted
    left join (${withinBytes(
      `select ${EVENT_COLUMNS} from platform_event_logs where ${where} ${NEWEST} limit ${limit} offset ${offset}`,
      bytes,
    )}) page on true
    order by page.created_at desc, page.id desc`,
  };
}

/** Conditions on type and platform, the same over the counters and over the log. */
export function pairConditions(
  filter: Pick<EventQuery, 'types' | 'platforms'>,
  p: { add(value: unknown): string },
): { sql: string; shape: string } {
  const types = filter.types ? ` and type = any(${p.add(filter.types)}::text[])` : '';
  const platforms = filter.platforms ? ` and platform = any(${p.add(filter.platforms)}::text[])` : '';
  return { sql: types + platforms, shape: `${types && 'types'}${platforms && 'platforms'}` };
}

interface Days {
  /** Condition on the counters' day: days entirely within the range. */
  whole: string;
  /** Parts of days at the ends of the range. */
  cut: { day: string; from: string; to: string }[];
  /** Parameters of the range's own ends. */
  from: string | null;
  to: string | null;
  shape: string;
}

function splitByDays({ from, to }: EventQuery, p: Parameters): Days {
  const fromDay = from?.slice(0, 10) ?? null;
  const toDay = to?.slice(0, 10) ?? null;
  const cutsFrom = from !== null && !from.endsWith('T00:00:00.000000Z');
  const cutsTo = to !== null && !to.endsWith('T00:00:00.000000Z');
  const fromAt = from === null ? null : `${p.add(from)}::timestamptz`;
  const toAt = to === null ? null : `${p.add(to)}::timestamptz`;
  const cut: Days['cut'] = [];
  if (fromAt && fromDay && cutsFrom) {
    const next = `(${p.add(fromDay)}::date + 1)::timestamp at time zone 'UTC'`;
    cut.push({ day: `${p.add(fromDay)}::date`, from: fromAt, to: toAt ? `least(${toAt}, ${next})` : next });
  }
  if (toAt && toDay && cutsTo && !(cutsFrom && fromDay === toDay)) {
    cut.push({ day: `${p.add(toDay)}::date`, from: `${p.add(`${toDay}T00:00:00Z`)}::timestamptz`, to: toAt });
  }
  const first = fromDay ? ` and day ${cutsFrom ? '>' : '>='} ${p.add(fromDay)}::date` : '';
  const last = toDay ? ` and day < ${p.add(toDay)}::date` : '';
  const oneDay = cut.length === 1 && cutsFrom && cutsTo ? '-one' : '';
  const shape = `${from ? (cutsFrom ? '-cutfrom' : '-from') : ''}${to ? (cutsTo ? '-cutto' : '-to') : ''}${oneDay}`;
  return { whole: first + last, cut, from: fromAt, to: toAt, shape };
}
