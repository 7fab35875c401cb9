import { type SummarisedSession, summaryOf } from '../../../domain/history/session-summary';
import type { Queryable } from '../../../engines/postgres/port';
import { type Column, columns, type ExportRow } from './columns';

/** Rows of a read model to export; each has the member `place`, behind which a later export continues. */
export interface RowRange {
  account: string | null;
  /** RFC 3339: inclusive, and exclusive. */
  from: string | null;
  to: string | null;
  types: readonly string[];
  after: string | null;
}

/** Rows that are read at a time. */
const PAGE = 500;

export const SESSION_COLUMNS: Column[] = [
  ...columns('text', 'id', 'account_id', 'status', 'session_type', 'platforms', 'categories'),
  ...columns('time', 'started_at', 'ended_at'),
  ...columns('integer', 'duration_secs', 'peak_viewers', 'avg_viewers'),
  ...columns('number', 'hours_watched'),
  ...columns('integer', 'total_messages', 'unique_chatters', 'new_followers', 'new_paid_subs', 'gifted_subs'),
  ...columns('integer', 'emote_count', 'gif_count'),
  ...columns('number', 'followers_per_hour'),
];

type SessionRow = SummarisedSession & { account_id: string } & Record<string, unknown>;

/** Finished sessions in the order of their ids. @throws Error for types, which sessions do not have */
export async function* sessionRows(db: Queryable, range: RowRange): AsyncGenerator<ExportRow[]> {
  if (range.types.length > 0) throw new Error('sessions have no --type');
  for (let { after } = range; ;) {
    const rows: SessionRow[] = await db.query<SessionRow>(
      `select id, account_id, is_live, title, platforms, categories, started_at, ended_at, figures
       from stream_sessions where not is_live and ($1::uuid is null or account_id = $1)
         and ($2::timestamptz is null or started_at >= $2) and ($3::timestamptz is null or started_at < $3)
         and ($4::uuid is null or id > $4) order by id limit ${PAGE}`,
      [range.account, range.from, range.to, after],
    );
    yield rows.map((row) => ({ ...summaryOf(row), account_id: row.account_id, place: row.id }));
    if (rows.length < PAGE) return;
    after = rows.at(-1)!.id;
  }
}

export const AUDIT_COLUMNS: Column[] = [
  ...columns('text', 'chain'),
  ...columns('integer', 'number'),
  ...columns('text', 'id', 'account_id', 'action', 'actor_kind', 'actor_id', 'acts_for', 'target_kind', 'target_id'),
  ...columns('text', 'type', 'position'),
  ...columns('time', 'created_at'),
];

type AuditRow = ExportRow & { chain: string; number: number };

/** Entries of the audit log, chain by chain. Personal parts are left out. */
export async function* auditRows(db: Queryable, range: RowRange): AsyncGenerator<ExportRow[]> {
  let [chain, number]: [string, number] | [null, null] =
    range.after === null ? [null, null] : (JSON.parse(range.after) as [string, number]);
  for (;;) {
    const rows: AuditRow[] = await db.query<AuditRow>(
      `select chain, number, id, account_id, action, actor_kind, actor_id, acts_for, target_kind, target_id, type,
         position, created_at, before, after
       from audit_log where ($1::text is null or account_id = $1)
         and ($2::timestamptz is null or created_at >= $2) and ($3::timestamptz is null or created_at < $3)
         and (cardinality($4::text[]) = 0 or type = any($4))
         and ($5::text is null or (chain, number) > ($5, $6::bigint)) order by chain, number limit ${PAGE}`,
      [range.account, range.from, range.to, range.types, chain, number],
    );
    yield rows.map((row) => ({ ...row, place: JSON.stringify([row.chain, row.number]) }));
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    [chain, number] = [last.chain, last.number];
  }
}
