import { EVENT_COLUMNS, eventData, type EventRow } from '../../domain/events/events';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import { COUNTED_TYPES } from '../../domain/history/session-figures';
import type { RecordEraser } from '../../kernel/eraser';
import { type CountingEvent, keepCounts } from '../../maintenance/retention/counted-events';

/**
 * Erases a person from the event log: the rows stay, so that counters and pages are unchanged, but lose their content
 * and the person's id.
 */
export const eventLogEraser: RecordEraser = {
  projection: 'event-log',
  topic: TOPICS.platform_events,
  tables: ['platform_event_logs'],
  async erase(tx, records) {
    const counting = await tx.query<CountingEvent & Record<string, unknown>>(
      `select account_id, id, platform, type, created_at, raw::text as raw from platform_event_logs
       where id = any($1::uuid[]) and type = any($3) and raw::text <> $2
         and get_byte(uuid_send(id), 6) >> 4 not in (5, 8)`,
      [records.map(({ id }) => id), ERASED_RAW, COUNTED_TYPES],
    );
    await keepCounts(tx, counting);
    const changed = await tx.query(
      `update platform_event_logs set raw = $2::json, user_id = null
       where id = any($1::uuid[]) and (raw::text <> $2 or user_id is not null) returning 1 as one`,
      [records.map(({ id }) => id), ERASED_RAW],
    );
    return changed.length;
  },
  async messages(tx, record_ids) {
    const rows = await tx.query<EventRow>(
      `select ${EVENT_COLUMNS} from platform_event_logs where id = any($1::uuid[])`,
      [record_ids],
    );
    return new Map(rows.map((row) => [row.id, eventData(row)]));
  },
};
