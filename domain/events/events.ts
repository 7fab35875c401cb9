import { z } from 'zod';
import { RawJson } from '../../lib/json/raw-json';
import { displayPayload } from './display-payload';

/** Event of the log as every protocol answers it. Source: spec doc2 §2.15. */
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
export const EventPush = EventRecord.omit({ raw: true })
  .extend({
    payload: z.unknown().describe('`raw` without contact data; null where it is longer than 48 KiB'),
  })
  .meta({ id: 'EventPush' });

/** Stands behind the id of an event, a UUID, in messages of this form; those of the previous release hold `raw`. */
const PAYLOAD = ',"payload":';
const BEHIND_ID = `{"id":"01900000-0000-7000-8000-000000000000"`.length;

/**
 * JSON text of `data` of an event message on `events:<account_id>`: the record without its raw, and `payload`, which is
 * what of the raw may be shown (spec doc3 §6.3; rulings, "what `events:` carries"). The id stands first: erasures find
 * messages by it.
 */
export function eventData({ raw, ...row }: EventRow): string {
  const { id, account_id, type, platform, external_id, created_at } = row;
  const record = JSON.stringify({ account_id, type, platform, external_id, created_at });
  return `{"id":${JSON.stringify(id)}${PAYLOAD}${displayPayload(raw) ?? 'null'},${record.slice(1)}`;
}

/** `data` of a stored message of an events channel as it may be sent, whichever release wrote it. */
export function sendableEventData(data: string): string {
  if (data.startsWith(PAYLOAD, BEHIND_ID) || !data.includes('"raw":')) return data;
  const before = JSON.parse(data) as Omit<EventRow, 'raw'> & { raw: unknown };
  return eventData({ ...before, raw: JSON.stringify(before.raw ?? null) });
}

/** The WebSocket channel of an account's events. */
export const eventsChannel = (account_id: string): string => `${EVENTS}${account_id}`;

/** The account of such a channel; null of another one. */
export const accountOfEvents = (channel: string): string | null =>
  isEventsChannel(channel) ? channel.slice(EVENTS.length) : null;

export const isEventsChannel = (channel: string): boolean => channel.startsWith(EVENTS);
const EVENTS = 'events:';
