import { START_AUTOMATION } from '../../domain/automation/automation-runs';
import { isTransition } from '../../domain/history/channel-status';
import { eventData, eventsChannel } from '../../domain/events/events';
import { allSettledOrThrow } from '../../lib/async/all-settled';
import { exactMicros, shownInstant } from '../../lib/time/instants';
import { eventUserId } from '../../domain/events/event-users';
import { TOPICS } from '../../domain/common/records';
import { BinaryRows, jsonArray, type Queryable, textArray } from '../../engines/postgres/port';
import { withoutNul } from '../../kernel/texts';
import type { LoggedRecord } from '../../engines/records/port';
import { tally } from '../../kernel/tally';
import { type ApplyMode, type ChannelMessage, projection, topic } from '../../kernel/projection';
import { UUID } from '../../lib/hash/uuid';
import { messageStarts, turnMessages } from '../../services/automation/runs/message-starts';
import { applyTurns } from '../runtime/ledger/channel-turns';

const COLUMNS = 'id, account_id, type, platform, external_id, user_id, raw, created_at';
// Keeps the order of the arrays without a copy: functions in a select list return their rows one by one, while those of
// a `from` are materialised first.
const INCOMING = `
  (select unnest($1::text[])::uuid as id, unnest($2::text[])::uuid as account_id, unnest($3::text[]) as type,
     unnest($4::text[]) as platform, unnest($5::text[]) as external_id, unnest($6::text[]) as user_id,
     unnest($7::json[]) as raw, unnest($8::text[])::timestamptz as created_at) i`;
/** Binary form, which the server need not parse; inserts many rows at a time. */
const COPY = `copy platform_event_logs (${COLUMNS}) from stdin (format binary)`;
const LOG = `insert into platform_event_logs (${COLUMNS}) select ${COLUMNS} from ${INCOMING}`;
const countsOf = (logged: string) => `
  select account_id, type, platform, (created_at at time zone 'UTC')::date, count(*) from ${logged} group by 1, 2, 3, 4`;
const RAISE = `on conflict (account_id, type, platform, day) do update set count = c.count + excluded.count`;
// All writers lock rows in one order, so that two workers never deadlock.
const COUNT = `
  insert into event_log_counters as c (account_id, type, platform, day, count) ${countsOf('logged')} order by 1, 2, 3, 4
    ${RAISE}`;
const LOGGED = 'returning id, account_id, type, platform, created_at';

// An id that derives from an Idempotency-Key (UUIDv5) may repeat with another time when the first answer was lost: the
// first record counts. The table's key alone would accept both.
const isDerived = ({ id }: { id: string }) => id[14] === '5';
const DERIVED = `get_byte(uuid_send(id), 6) >> 4 = 5`;

/** Counts from the rows in memory: grouping the returned rows of an insert costs as much as their writing. */
const COUNTED = `
  insert into event_log_counters as c (account_id, type, platform, day, count)
    select unnest($1::text[])::uuid, unnest($2::text[]), unnest($3::text[]), unnest($4::text[])::date,
      unnest($5::bigint[]) order by 1, 2, 3, 4
    ${RAISE}`;
const DAY = '2026-01-01'.length;
/**
 * Skips records that are stored already: these are not written, counted or announced. Used instead of `on conflict do
 * nothing` because it searches one index once, where a speculative insertion searches each unique index twice.
 */
const AGAIN = `with logged as (
    ${LOG}
      where not exists (select from platform_event_logs e where e.id = i.id and e.created_at = i.created_at)
        and not (${DERIVED} and exists (select from platform_event_logs e where e.id = i.id))
      ${LOGGED}
  ), counted as (${COUNT}) select id, created_at from logged`;
const RECOUNT = `insert into event_log_counters (account_id, type, platform, day, count) ${countsOf('platform_event_logs')}`;

/**
 * The event log (spec doc2 §2.15, doc3 §6.1): each platform event once, its counters, its message on
 * `events:<account_id>`, and the channels that are on air.
 */
export const eventLog = projection({
  name: 'event-log',
  version: 7,
  from: topic(TOPICS.platform_events) as { kind: 'topic'; topic: string },
  tables: ['platform_event_logs', 'event_log_counters', 'channel_status'],
  jobs: [START_AUTOMATION],
  // The row of a derived id excludes later records of the same id.
  late_ledger: {
    table: 'platform_event_logs',
    at_once: (record: LoggedRecord) => isTransition(record.type) || isDerived(record),
  },
  late_indexes: [
    'platform_event_logs_external_id',
    'platform_event_logs_newest',
    'platform_event_logs_type',
    'platform_event_logs_user',
  ],
  // The second report of a broadcast is no second event, but may correct what is on air.
  repeats: ({ type, reported_at, seen_at }: LoggedRecord) =>
    isTransition(type) && (reported_at !== undefined || seen_at !== undefined),
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]> {
    const rows = batch.map(storable);
    const repeats = (mode.repeats ?? []).map(storable);
    const turn = async (counted: readonly StorableRow[]): Promise<ChannelMessage[]> => {
      const turns = await applyTurns(inOrder(counted, repeats), tx);
      if (turns.length > 0 && mode.enqueue !== undefined && !mode.rebuilding) {
        const starts = await messageStarts(tx, turnMessages(turns), Date.now());
        if (starts.length > 0) await mode.enqueue(tx, starts);
      }
      return turns;
    };
    if (rows.length === 0) {
      const turns = await turn([]);
      return mode.rebuilding ? [] : turns;
    }
    const derived = rows.some(isDerived);
    if (mode.loading && !derived) {
      // Counted after the load. A record that its producer stored twice fails, and its page is retried with the check.
      await write(rows, tx);
      await turn(rows);
      return [];
    }
    const may_be_there = (mode.again ?? true) || derived || rows.some(({ micros }) => micros === null);
    if (!may_be_there) {
      const [, , messages] = await allSettledOrThrow([
        write(rows, tx),
        tx.query(COUNTED, countsOfRows(rows), 'event-log-counted'),
        announced(rows), // while the database writes
      ]);
      return [...messages, ...(await turn(rows))];
    }
    const logged = await tx.query<{ id: string; created_at: string }>(AGAIN, columns(rows), 'event-log-again');
    const created = new Map(logged.map((row) => [row.id, row.created_at]));
    const written = rows.flatMap((row) => {
      const created_at = created.get(row.id);
      return created_at === undefined ? [] : [{ ...row, created_at }];
    });
    const turns = await turn(written);
    return mode.rebuilding ? [] : [...written.map(messageOf), ...turns];
  },
  async loaded(tx: Queryable): Promise<void> {
    await tx.query('delete from event_log_counters');
    await tx.query(RECOUNT);
  },
});

/** Rows in the log's order, by which the repeats of an account's records stand among them. */
const inOrder = (rows: readonly StorableRow[], repeats: readonly StorableRow[]): readonly StorableRow[] =>
  repeats.length === 0 ? rows : [...rows, ...repeats].sort((a, b) => a.partition - b.partition || a.offset - b.offset);

const messageOf = (row: StorableRow): ChannelMessage => ({
  channel: eventsChannel(row.account_id),
  event_type: row.type,
  data: eventData(row),
  trace: row.trace,
});

/** Messages of rows whose times the table returns as they were written, except for trailing zeros. */
const announced = async (rows: readonly StorableRow[]): Promise<ChannelMessage[]> =>
  rows.map((row) => messageOf({ ...row, created_at: shownInstant(row.created_at) }));

interface StorableRow {
  id: string;
  account_id: string;
  type: string;
  platform: string;
  external_id: string | null;
  user_id: string | null;
  raw: string;
  created_at: string;
  /** Result of {@link exactMicros} for `created_at`. */
  micros: number | null;
  trace: string | null;
  reported_at: string | undefined;
  seen_at: string | undefined;
  partition: number;
  offset: number;
}

/** Replaces what the table cannot hold, so that one odd record does not fail its batch. */
function storable(record: LoggedRecord): StorableRow {
  return {
    id: record.id.toLowerCase(),
    account_id: record.account_id.toLowerCase(),
    type: holdable(record.type),
    platform: holdable(record.platform),
    external_id: record.external_id === null || record.external_id === '' ? null : withoutNul(record.external_id),
    user_id: eventUserId(record.platform, record.raw),
    raw: withoutNul(record.raw),
    created_at: record.occurred_at,
    micros: exactMicros(record.occurred_at),
    trace: record.trace,
    reported_at: record.reported_at,
    seen_at: record.seen_at,
    partition: record.partition,
    offset: record.offset,
  };
}

/** At most 100 characters as PostgreSQL counts them (code points). */
function holdable(text: string): string {
  const clean = withoutNul(text);
  return clean.length <= 100 ? clean : [...clean].slice(0, 100).join('');
}

/** Rows from which on a COPY is cheaper; its plan is not cached. */
const COPY_FROM = 32;

function write(rows: readonly StorableRow[], tx: Queryable): Promise<unknown> {
  const copied = rows.length < COPY_FROM ? null : copiedRows(rows);
  return copied === null ? tx.query(LOG, columns(rows), 'event-log-load') : tx.query(COPY, [copied]);
}

/** The rows for {@link COPY}; null where PostgreSQL has to read an id or a time itself. */
function copiedRows(rows: readonly StorableRow[]): Buffer | null {
  const copied = new BinaryRows(8);
  for (const row of rows) {
    if (row.micros === null || !UUID.test(row.id) || !UUID.test(row.account_id)) return null;
    copied.row();
    copied.uuid(row.id);
    copied.uuid(row.account_id);
    for (const text of [row.type, row.platform, row.external_id, row.user_id, row.raw]) copied.text(text);
    copied.instant(row.micros);
  }
  return copied.end();
}

/** Number of rows per counter, as the parameters of {@link COUNTED}. */
function countsOfRows(rows: readonly StorableRow[]): unknown[] {
  const counted = tally(
    rows,
    ({ account_id, created_at, platform, type }) =>
      // No text of a row holds U+0000.
      `${account_id}${created_at.slice(0, DAY)}${platform}\0${type}`,
  );
  return [
    textArray(counted.map(({ row }) => row.account_id)),
    textArray(counted.map(({ row }) => row.type)),
    textArray(counted.map(({ row }) => row.platform)),
    textArray(counted.map(({ row }) => row.created_at.slice(0, DAY))),
    counted.map(({ count }) => count),
  ];
}

function columns(rows: readonly StorableRow[]): unknown[] {
  type Text = 'id' | 'account_id' | 'type' | 'platform' | 'external_id' | 'user_id' | 'created_at';
  const column = (name: Text) => textArray(rows.map((row) => row[name]));
  return [
    column('id'),
    column('account_id'),
    column('type'),
    column('platform'),
    column('external_id'),
    column('user_id'),
    jsonArray(rows.map(({ raw }) => raw)),
    column('created_at'),
  ];
}
