import type pg from 'pg';
import type { JsonObject } from '../../../lib/json/json';
import type { Logger } from '../../log/port';
import type { Wakeups } from '../../wakeups/port';
import { AppendGroups } from './append-groups';
import { encodeAppend } from '../checks';
import {
  type EventBatch,
  type EventFilter,
  type EventStore,
  type Position,
  RECORDED_AT,
  type StoredEvent,
  type SubscribeOptions,
} from '../port';
import { ActiveSet } from '../../active-set';
import { Tail } from '../tail';

export interface PostgresEventStoreOptions {
  pool: pg.Pool;
  wakeups: Wakeups;
  log?: Logger;
  /** Fallback poll of subscriptions, milliseconds. Default 1000. */
  poll_ms?: number;
  /**
   * Milliseconds after which an unanswered append is sent again over another connection: a half-open link never
   * answers. Default 5000.
   */
  append_timeout_ms?: number;
  /** Milliseconds for which an append whose outcome is unknown is sent again; above the timeout. Default 20 000. */
  retry_for_ms?: number;
}

/** Most rows of other types that one filtered page skips. */
const FILTER_WINDOW = 10_000;
const DEFAULT_BATCH = 500;
/** Most events of a page of `readAll`: a rebuild writes a whole page at once. */
const MAX_PAGE = 5000;
/** Target length of a page of `readAll`, in characters. */
const PAGE_LENGTH = 4 * 1024 * 1024;
const STREAM_PAGE = 1000;
/** No stream has a higher revision. */
const NEWEST = Number.MAX_SAFE_INTEGER;
// Sorting names the table: a bare `order by position` would sort by the text of the output column.
const COLUMNS = `position::text, stream, revision::float8, id, type, data::text, metadata::text,
  to_char(recorded_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as recorded_at`;

interface EventRow {
  position: string;
  stream: string;
  revision: number;
  id: string;
  type: string;
  data: string;
  metadata: string;
  recorded_at: string;
}

/**
 * The event store on PostgreSQL (design §5). The pool stays its owner's. Position order is commit order (see migration
 * 0002), so a page is `position > $1 order by position` and needs no knowledge of running transactions: an old one,
 * here or in another database, delays nothing.
 */
export async function createPostgresEventStore(options: PostgresEventStoreOptions): Promise<EventStore> {
  const { rows } = await options.pool.query<{ value: string }>("select value from installation where name = 'id'");
  return new PostgresEventStore(`postgres:${rows[0]!.value}`, options);
}

class PostgresEventStore implements EventStore {
  private readonly groups: AppendGroups;
  private readonly tails = new ActiveSet<Tail>();
  private closed = false;

  constructor(
    readonly id: string,
    private readonly options: PostgresEventStoreOptions,
  ) {
    this.groups = new AppendGroups({
      pool: options.pool,
      timeout_ms: options.append_timeout_ms ?? 5000,
      retry_for_ms: options.retry_for_ms ?? 20_000,
      onStored: () => options.wakeups.notify('events'),
    });
  }

  async append(...[writes, metadata]: Parameters<EventStore['append']>) {
    if (this.closed) throw new Error('the event store is closed');
    return this.groups.append(encodeAppend(writes, metadata));
  }

  async read(...[stream, from, options]: Parameters<EventStore['read']>): Promise<StoredEvent[]> {
    const { limit = Infinity, backwards = false } = options ?? {};
    const events: StoredEvent[] = [];
    const text = `select ${COLUMNS} from domain_events where stream = $1 and revision
      ${backwards ? '<= $2 order by domain_events.revision desc' : '>= $2 order by domain_events.revision'} limit $3`;
    for (let at = from ?? (backwards ? NEWEST : 0); ;) {
      const size = Math.min(STREAM_PAGE, limit - events.length);
      const { rows } = await this.query(backwards ? 'read-stream-back' : 'read-stream', text, [stream, at, size]);
      for (const row of rows) events.push(toEvent(row));
      if (rows.length < STREAM_PAGE || events.length >= limit) return events;
      at = events[events.length - 1]!.revision + (backwards ? -1 : 1);
    }
  }

  async *readAll(after: Position | null, filter: EventFilter = {}): AsyncGenerator<EventBatch> {
    const head = await this.head();
    let at = after;
    let size = DEFAULT_BATCH;
    while (head !== null && this.compare(at ?? '0', head) < 0) {
      const page = await this.page(at, filter, size, head);
      if (!page) return;
      size = nextSize(size, page.batch.events.length, page.length);
      at = page.batch.position;
      yield page.batch;
    }
  }

  subscribe(subscribe: SubscribeOptions, onBatch: (batch: EventBatch) => Promise<void>): Tail {
    const size = subscribe.batch_size ?? DEFAULT_BATCH;
    return this.tails.add(
      new Tail({
        after: subscribe.after,
        wakeups: this.options.wakeups,
        log: this.options.log,
        poll_ms: this.options.poll_ms ?? 1000,
        fetch: (after) => this.page(after, subscribe, size),
        onBatch,
      }),
    );
  }

  async head(): Promise<Position | null> {
    const text = 'select position::text from domain_events order by domain_events.position desc limit 1';
    return (await this.query('events-head', text, [])).rows[0]?.position ?? null;
  }

  compare(a: Position, b: Position): number {
    return Number(a) - Number(b);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.tails.stop();
    await this.groups.idle();
  }

  /** Reads a page of events and the position at its end, in one statement and so one snapshot. */
  private async page(
    after: Position | null,
    filter: EventFilter,
    size: number,
    to: Position = '9223372036854775807',
  ): Promise<{ batch: EventBatch; end: boolean; length: number } | undefined> {
    const from = after ?? '0';
    if (!filter.types) {
      const text = `select ${COLUMNS} from domain_events where position > $1 and position <= $2 order by domain_events.position limit $3`;
      const { rows } = await this.query('events-page', text, [from, to, size]);
      if (rows.length === 0) return undefined;
      return {
        batch: { events: rows.map(toEvent), position: rows[rows.length - 1]!.position },
        end: rows.length < size,
        length: lengthOf(rows),
      };
    }
    // Positions are dense except for events that a restore left out, so that an index probe each finds the window's
    // end.
    const text = `with span as materialized (
        select coalesce(
            (select max(position) from domain_events
             where position > $1 and position <= least($2::bigint, $1::bigint + ${FILTER_WINDOW})),
            (select min(position) from domain_events where position > $1 and position <= $2)) as last,
          (select max(position) from domain_events where position > $1 and position <= $2) as newest)
      select span.last::text, span.last = span.newest as to_the_end, e.* from span
      left join lateral (select ${COLUMNS} from domain_events
        where position > $1 and position <= span.last
          and (type = any($4::text[]) or split_part(type, ':', 1) || ':*' = any($4::text[]))
            order by domain_events.position limit $3) e on true`;
    const result = await this.query('events-filtered', text, [from, to, size, filter.types]);
    const rows = result.rows as (EventRow & { last: string | null; to_the_end: boolean })[];
    const { last, to_the_end } = rows[0]!;
    if (last === null) return undefined;
    const found = rows.filter((row) => row.position !== null);
    const events = found.map(toEvent);
    const full = events.length === size;
    const position = full ? events[events.length - 1]!.position : last;
    return { batch: { events, position }, end: !full && to_the_end, length: lengthOf(found) };
  }

  private query(name: string, text: string, values: unknown[]): Promise<pg.QueryResult<EventRow>> {
    const query = { name, text, values, query_timeout: 10_000 };
    return this.options.pool.query<EventRow>(query);
  }
}

/** Number of events for the next page: at most double, and as many as fill it at the length of the last ones. */
function nextSize(size: number, events: number, length: number): number {
  if (events === 0) return size;
  return Math.max(1, Math.min(MAX_PAGE, size * 2, Math.floor((PAGE_LENGTH * events) / length)));
}

const lengthOf = (rows: readonly EventRow[]): number =>
  rows.reduce((sum, { data, metadata }) => sum + data.length + metadata.length, 0);

function toEvent(row: EventRow): StoredEvent {
  const metadata = JSON.parse(row.metadata) as Record<string, string>;
  const { [RECORDED_AT]: recorded_at = row.recorded_at } = metadata;
  delete metadata[RECORDED_AT];
  return {
    id: row.id,
    stream: row.stream,
    revision: row.revision,
    position: row.position,
    type: row.type,
    data: JSON.parse(row.data) as JsonObject,
    metadata,
    recorded_at,
  };
}
