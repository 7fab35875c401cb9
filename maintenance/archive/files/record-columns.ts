import { readStreamSample } from '../../../domain/history/stream-samples';
import { TOPICS } from '../../../domain/common/records';
import { RawJson } from '../../../lib/json/raw-json';
import type { ReplayedRecord } from '../replay';
import { type Column, columns, type ExportRow } from './columns';

/** `hash` leaves out names, texts and raw data. */
export const PERSONS = ['hash', 'clear'] as const;
export type Persons = (typeof PERSONS)[number];

/** Topics of records that are written to files, by the names of their sources. */
export const TOPIC_OF = {
  events: TOPICS.platform_events,
  chat: TOPICS.chat_events,
  samples: TOPICS.stream_samples,
} as const;
export type TopicSource = keyof typeof TOPIC_OF;

const PLACE = [
  ...columns('integer', 'partition', 'offset'),
  ...columns('time', 'appended_at'),
  ...columns('text', 'id', 'account_id', 'type', 'platform'),
];
const RECORD = [
  ...PLACE,
  ...columns('text', 'external_id'),
  ...columns('time', 'occurred_at', 'received_at'),
  ...columns('text', 'person'),
];
const SAMPLE = [
  ...PLACE,
  ...columns('time', 'occurred_at'),
  ...columns('text', 'broadcast_id'),
  ...columns('integer', 'viewer_count', 'follower_count'),
  ...columns('text', 'category'),
];

/** Columns of records of a source. */
export function recordColumns(source: TopicSource, persons: Persons): Column[] {
  const clear = (name: string) => (persons === 'clear' ? columns('text', name) : []);
  return source === 'samples' ? [...SAMPLE, ...clear('title')] : [...RECORD, ...clear('raw')];
}

/** Row of a record; of an undecodable one its place alone. */
export function recordRow(source: TopicSource, record: ReplayedRecord): ExportRow {
  if (!('raw' in record)) return { ...record };
  // Records of older releases name the person in clear.
  const person = record.subject?.includes(':') === true ? null : record.subject;
  const row = { ...record, person, raw: new RawJson(record.raw) };
  return source === 'samples' ? { ...row, ...readStreamSample(record.raw) } : row;
}
