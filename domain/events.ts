import { z } from 'zod';
import { RawJson } from '../kernel/raw-json';

/** One event of the log as every protocol shows it. Source: spec doc2 §2.15. */
export const EventRecord = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    type: z.string().describe('`platform:action`'),
    platform: z.string(),
    external_id: z.string().nullable().describe("The vendor's delivery or object id"),
    raw: z.unknown().describe("The vendor's payload, digit for digit"),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'EventRecord' });

/** An event whose `raw` is still text. */
export interface EventRow {
  id: string;
  account_id: string;
  type: string;
  platform: string;
  external_id: string | null;
  raw: string;
  created_at: string;
}

/** Columns of {@link EventRow}, in the order in which answers show them. */
export const EVENT_COLUMNS = 'id, account_id, type, platform, external_id, raw, created_at';

/** The event of a row that has other columns too. */
export function eventRow(row: EventRow): EventRow {
  const { id, account_id, type, platform, external_id, raw, created_at } = row;
  return { id, account_id, type, platform, external_id, raw, created_at };
}

/** The record for an answer: `raw` keeps its text. */
export function eventRecord(row: EventRow): z.input<typeof EventRecord> {
  const { id, account_id, type, platform, external_id, raw, created_at } = row;
  return { id, account_id, type, platform, external_id, raw: new RawJson(raw), created_at };
}

/** An event as it goes over `events:<account_id>`, where a client's own broadcast may carry anything else. */
export const EventPush = EventRecord.extend({ payload: z.unknown().describe('`raw` again') }).meta({ id: 'EventPush' });

/**
 * JSON text of `data` of an event message on `events:<account_id>`: the record, and `payload`, which is its raw again
 * (spec doc3 §6.3). Put together around the raw text, so that it arrives byte for byte.
 */
export function eventData(row: EventRow): string {
  const text = JSON.stringify;
  return (
    `{"id":${text(row.id)},"account_id":${text(row.account_id)},"type":${text(row.type)},"platform":${text(row.platform)},` +
    `"external_id":${text(row.external_id)},"raw":${row.raw},"created_at":${text(row.created_at)},"payload":${row.raw}}`
  );
}

/** The WebSocket channel of an account's events. */
export const eventsChannel = (account_id: string): string => `events:${account_id}`;
