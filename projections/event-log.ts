import { eventData, eventsChannel } from '../domain/events';
import { eventUserId } from '../domain/event-users';
import { type SameRaw, TOPICS } from '../domain/records';
import { jsonArray, type Queryable, textArray } from '../engines/postgres/port';
import type { LoggedRecord } from '../engines/records/port';
import { type ApplyMode, type ChannelMessage, projection, topic } from '../kernel/projection';
import { withoutRepeats } from './runtime/repeats';

// In the order of the arrays and without a copy of them: functions in a select list give their rows one by one, those
// of a `from` are stored first.
const INCOMING = `
  (select unnest($1::text[])::uuid as id, unnest($2::text[])::uuid as account_id, unnest($3::text[]) as type, unnest($4::text[]) as platform,
     unnest($5::text[]) as external_id, unnest($6::text[]) as user_id, unnest($7::json[]) as raw, unnest($8::text[])::timestamptz as created_at) i`;
const COUNTS_OF = (logged: string) => `
  select account_id, type, platform, (created_at at time zone 'UTC')::date, count(*) from ${logged} group by 1, 2, 3, 4`;
// One order for all writers of a row, so that two workers never wait for each other in a circle.
const COUNTED = `
  insert into event_log_counters as c (account_id, type, platform, day, count) ${COUNTS_OF('logged')} order by 1, 2, 3, 4
    on conflict (account_id, type, platform, day) do update set count = c.count + excluded.count`;
const LOGGED_COLUMNS = 'id, account_id, type, platform, external_id, user_id, raw, created_at';
const LOG = `insert into platform_event_logs (${LOGGED_COLUMNS}) select ${LOGGED_COLUMNS} from`;

// Asked instead of `on conflict do nothing`: one look into one index, where a speculative insertion looks into each
// unique one twice.
const NOT_LOGGED = `not exists (select from platform_event_logs e where e.id = i.id and e.created_at = i.created_at)`;

// An id that derives from an Idempotency-Key (UUIDv5) may come again with another time, when the first answer was lost:
// the first record counts.
const isDerived = ({ id }: { id: string }) => id[14] === '5';
const DERIVED = `get_byte(uuid_send(id), 6) >> 4 = 5`;
const FIRST_OF_ITS_ID = `not (${DERIVED} and exists (select from platform_event_logs e where e.id = i.id))`;

/**
 * The ledger decides which of two deliveries of one external id counts, whatever their times say; a row that is there
 * already is not written, counted or announced again. Of duplicates inside one batch the first wins, since the ledger
 * is asked in the batch's order.
 */
const LIVE = `
  with taken as (
    insert into ingested_ids (account_id, topic, external_id, record_id)
      select account_id, $9, external_id, id
      from (select unnest($1::text[])::uuid as id, unnest($2::text[])::uuid as account_id, unnest($5::text[]) as external_id) i
      where external_id is not null
      on conflict do nothing returning record_id
  ),
  logged as (
    ${LOG} ${INCOMING}
      where (external_id is null and ${NOT_LOGGED} and ${FIRST_OF_ITS_ID}) or id in (select record_id from taken)
      returning id, account_id, type, platform, created_at
  ),
  counted as (${COUNTED})
  select id, created_at from logged`;

/** A rebuild reads the ledger and never writes it: a record counts when the ledger names it as the one that won. */
const REBUILD = `
  with logged as (
    ${LOG} ${INCOMING}
      where ${NOT_LOGGED} and ${FIRST_OF_ITS_ID} and (external_id is null or exists (
        select from ingested_ids l
        where l.account_id = i.account_id and l.topic = $9 and l.external_id = i.external_id and l.record_id = i.id))
      returning account_id, type, platform, created_at
  )
  ${COUNTED}`;

/**
 * The whole log at once asks the ledger and counts in a tenth of what record after record costs. A record is there
 * already only when its producer stored it twice: rare enough to find out by failing. Derived ids are asked for, since
 * the key does not refuse another time.
 */
const LOAD = `${LOG} ${INCOMING}`;
const LOADED = `
  delete from platform_event_logs e where external_id is not null and not exists (
    select from ingested_ids l
    where l.account_id = e.account_id and l.topic = $1 and l.external_id = e.external_id and l.record_id = e.id)`;
const RECOUNT = `insert into event_log_counters (account_id, type, platform, day, count) ${COUNTS_OF('platform_event_logs')}`;
/**
 * The event log (spec doc2 §2.15, doc3 §6.1): every new platform event once, its counters, and its message on
 * `events:<account_id>`. A page that comes again changes nothing and announces nothing.
 */
export const eventLog = projection({
  name: 'event-log',
  version: 1,
  from: topic(TOPICS.platform_events) as { kind: 'topic'; topic: string },
  tables: ['platform_event_logs', 'event_log_counters'],
  late_indexes: [
    'platform_event_logs_external_id',
    'platform_event_logs_newest',
    'platform_event_logs_type',
    'platform_event_logs_user',
  ],
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]> {
    // A record can lie in the log twice, when its producer could not know that the first attempt was stored: the first
    // one counts.
    const firsts = new Map<string, LoggedRecord>();
    for (const record of batch) if (!firsts.has(record.id)) firsts.set(record.id, record);
    const rows = [...firsts.values()].map(storable);
    if (mode.loading && !rows.some(isDerived)) {
      await tx.query(LOAD, columns(rows), 'event-log-load');
      return [];
    }
    if (mode.rebuilding) {
      await tx.query(REBUILD, [...columns(rows), TOPICS.platform_events], 'event-log-rebuild');
      return [];
    }
    const first = await withoutRepeats(rows, TOPICS.platform_events, tx);
    if (first.length === 0) return [];
    const values = [...columns(first), TOPICS.platform_events];
    const logged = await tx.query<{ id: string; created_at: string }>(LIVE, values, 'event-log-live');
    const created = new Map(logged.map((row) => [row.id, row.created_at]));
    const messages: ChannelMessage[] = [];
    for (const row of first) {
      const created_at = created.get(row.id);
      if (created_at === undefined) continue;
      messages.push({
        channel: eventsChannel(row.account_id),
        event_type: row.type,
        data: eventData({ ...row, created_at }),
        trace: row.trace,
      });
    }
    return messages;
  },
  async loaded(tx: Queryable): Promise<void> {
    await tx.query(LOADED, [TOPICS.platform_events]);
    await tx.query('delete from event_log_counters');
    await tx.query(RECOUNT);
  },
});

interface StorableRow {
  id: string;
  account_id: string;
  type: string;
  platform: string;
  external_id: string | null;
  user_id: string | null;
  raw: string;
  created_at: string;
  trace: string | null;
  same_raw: SameRaw | undefined;
  former_id: string | undefined;
}

/** The record with what the table cannot hold made holdable: one odd record must not make its batch fail. */
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
    trace: record.trace,
    same_raw: record.same_raw,
    former_id: record.former_id === undefined ? undefined : withoutNul(record.former_id),
  };
}

// U+0000 does not exist in PostgreSQL's text.
const withoutNul = (text: string) => (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text);

/** At most 100 characters as PostgreSQL counts them (code points). */
function holdable(text: string): string {
  const clean = withoutNul(text);
  return clean.length <= 100 ? clean : [...clean].slice(0, 100).join('');
}

function columns(rows: readonly StorableRow[]): unknown[] {
  const column = <K extends Exclude<keyof StorableRow, 'same_raw' | 'former_id'>>(name: K) =>
    textArray(rows.map((row) => row[name]));
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

/**
 * Makes the log's partitions of this month and of the next `months`, and moves rows that came before their month had
 * one. To be called at the start and once a day by any number of processes; returns how many it made. Without it rows
 * go to the default partition.
 */
export async function ensureEventLogPartitions(db: Queryable, months = 2): Promise<number> {
  const [row] = await db.query<{ made: number }>('select ensure_event_log_partitions($1) as made', [months]);
  return row!.made;
}
