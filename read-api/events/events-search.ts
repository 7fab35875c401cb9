import type { RequestContext } from '../../access/authentication/caller';
import { EVENT_COLUMNS, eventRow, type EventRow } from '../../domain/events/events';
import type { Database, Queryable } from '../../engines/postgres/port';
import { literal } from '../../kernel/sql';
import { decodedPatterns, unpaired } from './decoded-text';
import { type EventQuery, type FoundEvents, pairConditions, withinBytes } from './events-pages';
import { FairSearchQueue } from './fair-search-queue';

/** Milliseconds of one search, including the wait in the queue. */
export const SEARCH_BUDGET_MS = 2000;
/**
 * Concurrent searches per process, one per account: a search reads much, and must leave connections and memory
 * bandwidth to other work.
 */
const CONCURRENT = 3;
/** Longest queue of searches per process; more are refused. */
const LONGEST_QUEUE = 20;
/** Events scanned per statement; the budget is checked in between. */
const WINDOW_EVENTS = 5000;
const DAY_MS = 86_400_000;
const QUERY_CANCELED = '57014';

/** Interval, `from` included, `to` not. */
interface Window {
  from: string;
  to: string;
}

interface Hits {
  total: number;
  keys: { id: string; created_at: string }[];
  partial: boolean;
}

const turns = new FairSearchQueue(CONCURRENT, LONGEST_QUEUE);

/**
 * Page of the events whose decoded raw text contains `search`, without regard to case; JSON as it is stored is found
 * too. Scans newest first for at most `budget_ms`, including the wait in the queue. At the deadline it returns the hits
 * so far with `partial: true`, and `total` is a lower bound.
 * @throws DomainError `TOO_MANY_SEARCHES` when too many searches wait
 */
export async function searchEvents(
  db: Database,
  filter: EventQuery,
  search: string,
  budget_ms = SEARCH_BUDGET_MS,
  onGone?: RequestContext['onGone'],
): Promise<FoundEvents> {
  const deadline = Date.now() + budget_ms;
  const first = filter.offset;
  const hits: Hits = { total: 0, keys: [], partial: false };
  const look = async () => {
    await db.transaction((tx) => lookThrough(tx, filter, search, first + filter.limit, hits, deadline));
    return true;
  };
  try {
    if ((await turns.run(filter.account_id, budget_ms, onGone, look)) === null) hits.partial = true;
  } catch (error) {
    if ((error as { code?: string }).code !== QUERY_CANCELED) throw error;
    hits.partial = true;
  }
  const keys = hits.keys.slice(first, first + filter.limit);
  const rows = keys.length === 0 ? [] : await eventsByKey(db, filter, keys);
  return { rows, total: hits.total, partial: hits.partial, cut: rows.length < keys.length };
}

/** Adds to `hits` window by window, so that earlier hits remain when a later window exceeds the deadline. */
async function lookThrough(
  tx: Queryable,
  filter: EventQuery,
  search: string,
  wanted: number,
  hits: Hits,
  deadline: number,
): Promise<void> {
  await tx.query('set transaction isolation level repeatable read, read only');
  const patterns = decodedPatterns(search);
  // Only a search with a backslash can match stored escapes that decoded text does not have.
  const stored = search.includes('\\') ? `%${literal(search)}%` : null;
  for (const window of await windows(tx, filter)) {
    const left = deadline - Date.now();
    if (left <= 0) {
      hits.partial = true;
      return;
    }
    await tx.query(`select set_config('statement_timeout', $1, true)`, [String(left)]);
    const values: unknown[] = [filter.account_id, window.from, window.to, patterns, wanted - hits.keys.length];
    const pairs = pairConditions(filter, { add: (value) => `$${values.push(value)}` });
    const user = filter.user_id === null ? '' : ` and user_id = $${values.push(filter.user_id)}`;
    const as_stored = stored === null ? '' : ` or raw::text ilike $${values.push(stored)}`;
    const found = await tx.query(
      `with hit as materialized (
         select id, created_at from platform_event_logs
         where account_id = $1 and created_at >= $2 and created_at < $3${pairs.sql}${user}
           and (${unpaired('raw::text')} ~ all($4::text[])${as_stored})
       )
       select (select count(*) from hit) as total, key.id, key.created_at
       from (select true) one
       left join (select id, created_at from hit order by created_at desc, id desc limit $5) key on true
       order by key.created_at desc, key.id desc`,
      values,
    );
    hits.total += found[0]!.total;
    for (const { id, created_at } of found) if (id !== null) hits.keys.push({ id, created_at });
  }
}

/**
 * Splits the range into windows of about {@link WINDOW_EVENTS} matching events, newest first; skips days without any.
 */
async function windows(tx: Queryable, filter: EventQuery): Promise<Window[]> {
  // A person's events are few and have an index of their own.
  if (filter.user_id !== null) return [{ from: filter.from ?? '-infinity', to: filter.to ?? 'infinity' }];
  const values: unknown[] = [filter.account_id, filter.from, filter.to];
  const pairs = pairConditions(filter, { add: (value) => `$${values.push(value)}` });
  const days = await tx.query<{ start: string; events: number }>(
    `select day::timestamp at time zone 'UTC' as start, sum(count)::bigint as events from event_log_counters
     where account_id = $1 and ($2::timestamptz is null or day >= ($2::timestamptz at time zone 'UTC')::date)
       and ($3::timestamptz is null or day <= ($3::timestamptz at time zone 'UTC')::date)${pairs.sql}
     group by day order by day desc`,
    values,
  );
  const cut: Window[] = [];
  let filled = Infinity;
  for (const { start, events } of days) {
    const from = Date.parse(start);
    const last = cut.at(-1);
    if (last && filled + events <= WINDOW_EVENTS) {
      last.from = iso(from);
      filled += events;
      continue;
    }
    const parts = Math.ceil(events / WINDOW_EVENTS);
    for (let part = parts; part > 0; part -= 1) {
      cut.push({
        from: iso(from + Math.floor((DAY_MS * (part - 1)) / parts)),
        to: iso(from + Math.floor((DAY_MS * part) / parts)),
      });
    }
    filled = parts > 1 ? Infinity : events;
  }
  return cut.flatMap((window) => clipWindow(window, filter));
}

const iso = (ms: number) => new Date(ms).toISOString().replace('Z', '000Z');

/** Compares instants as texts, which all have the same form. */
function clipWindow(window: Window, { from, to }: EventQuery): Window[] {
  const clipped = {
    from: from !== null && from > window.from ? from : window.from,
    to: to !== null && to < window.to ? to : window.to,
  };
  return clipped.from < clipped.to ? [clipped] : [];
}

async function eventsByKey(
  db: Queryable,
  { account_id, max_bytes }: EventQuery,
  keys: Hits['keys'],
): Promise<EventRow[]> {
  const page = `select ${EVENT_COLUMNS} from platform_event_logs e
     join unnest($2::uuid[], $3::timestamptz[]) as key (id, created_at) using (id, created_at)
     where account_id = $1`;
  const rows = await db.query<EventRow>(
    `${withinBytes(page, '$4')} order by created_at desc, id desc`,
    [account_id, keys.map((key) => key.id), keys.map((key) => key.created_at), max_bytes],
    'events-by-key',
  );
  return rows.map(eventRow);
}
