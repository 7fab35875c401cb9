import { readCounts } from '../../domain/history/session-figures';
import type { Queryable } from '../../engines/postgres/port';

/** An event of a type that figures of streams count; `raw` is JSON text. */
export interface CountingEvent {
  account_id: string;
  id: string;
  platform: string;
  type: string;
  created_at: string;
  raw: string;
}

/** Keeps what events count for, before their rows are deleted or emptied; the first of repeated calls decides. */
export async function keepCounts(tx: Queryable, events: readonly CountingEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ raw, ...event }) => ({ ...event, counts: readCounts(event.type, raw) }));
  await tx.query(
    `insert into counted_events (account_id, id, platform, type, created_at, counts)
     select account_id, id, platform, type, created_at, counts
     from json_to_recordset($1::json) as e (account_id uuid, id uuid, platform text, type text,
       created_at timestamptz, counts jsonb)
     on conflict (account_id, id) do nothing`,
    [JSON.stringify(rows)],
    'counted-events',
  );
}
