import { EVENT_COLUMNS, eventRow, type EventRow } from '../domain/events';
import type { Queryable } from '../engines/postgres/port';

/** What to look for. Instants are RFC 3339 UTC: `from` is included, `to` is not. */
export interface EventQuery {
  account_id: string;
  types: readonly string[] | null;
  platforms: readonly string[] | null;
  user_id: string | null;
  from: string | null;
  to: string | null;
  page: number;
  limit: number;
}

export interface FoundEvents {
  rows: EventRow[];
  total: number;
  partial?: boolean;
}

/**
 * One page, newest first, with the exact number of all matching events, from one statement and so from one snapshot.
 * The cost follows the page and the days it lies in, not the account's size; with `user_id` it follows that person's
 * events.
 */
export async function eventsPage(db: Queryable, filter: EventQuery): Promise<FoundEvents> {
  const built = filter.user_id === null ? byCounters(filter) : byUser(filter, filter.user_id);
  const found = await db.query(built.text, built.values, built.name);
  const total: number = found[0]?.total ?? 0;
  // An empty page is one row, which has the total alone.
  return { rows: (found[0]?.id ?? null) === null ? [] : found.map((row) => eventRow(row as EventRow)), total };
}

interface Built {
  name: string;
  text: string;
  values: unknown[];
}

/** Collects values and gives each its `$n`; the name tells the shape, so that each shape is one prepared statement. */
class Parameters {
  readonly values: unknown[] = [];
  add(value: unknown): string {
    return `$${this.values.push(value)}`;
  }
}

/**
 * The counters say on which days the page lies, so only those days (and their partitions) are read, however deep the
 * page is; and which (type, platform) pairs occur there, so that each gives its newest rows from the index and the page
 * is their merge. A first and a last day that the range cuts are counted in the log itself.
 */
function byCounters(filter: EventQuery): Built {
  const p = new Parameters();
  const account = p.add(filter.account_id);
  const limit = `${p.add(filter.limit)}::bigint`;
  const offset = `${p.add((filter.page - 1) * filter.limit)}::bigint`;
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
  const newest = 'order by created_at desc, id desc';
  const page = filtered
    ? `select rows.* from (select distinct type, platform from matching, place
         where day between first_day and last_day) pair
       cross join lateral (
         select ${EVENT_COLUMNS} from platform_event_logs e
         where e.account_id = ${account} and e.type = pair.type and e.platform = pair.platform and ${inWindow}
         ${newest} limit ${limit} + (select skip from place)
       ) rows
       ${newest} limit ${limit} offset (select skip from place)`
    : `select ${EVENT_COLUMNS} from platform_event_logs where account_id = ${account} and ${inWindow}
       ${newest} limit ${limit} offset (select skip from place)`;
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
    select place.total, page.* from place left join (${page}) page on true order by page.created_at desc, page.id desc`,
  };
}

/**
 * A person's events are few next to an account's: they are counted in their own index, which holds type and platform
 * too.
 */
function byUser(filter: EventQuery, user_id: string): Built {
  const p = new Parameters();
  const account = p.add(filter.account_id);
  const limit = p.add(filter.limit);
  const offset = p.add((filter.page - 1) * filter.limit);
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
    left join (
      select ${EVENT_COLUMNS} from platform_event_logs where ${where}
      order by created_at desc, id desc limit ${limit} offset ${offset}
    ) page on true
    order by page.created_at desc, page.id desc`,
  };
}

/** Conditions on type and platform, the same over the counters and over the log. */
export function pairConditions(filter: EventQuery, p: { add(value: unknown): string }): { sql: string; shape: string } {
  const types = filter.types ? ` and type = any(${p.add(filter.types)}::text[])` : '';
  const platforms = filter.platforms ? ` and platform = any(${p.add(filter.platforms)}::text[])` : '';
  return { sql: types + platforms, shape: `${types && 'types'}${platforms && 'platforms'}` };
}

interface Days {
  /** Condition on the counters' day: the days that lie in the range whole. */
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
