import { validate } from 'uuid';
import type { Metadata, StreamWrite } from './port';

/**
 * An append that no store could keep faithfully; refused before it is sent, so that it does not fail others' appends.
 */
export class InvalidEvent extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidEvent';
  }
}

/** A write whose data is JSON text already. */
export interface EncodedWrite {
  stream: string;
  /** -2 any, -1 none. */
  expected: number;
  ids: string[];
  types: string[];
  data: string[];
}

export interface EncodedAppend {
  writes: EncodedWrite[];
  metadata: string;
  event_count: number;
  /** UTF-16 units, near enough to bytes for bounding a group. */
  size: number;
}

const UNNAMEABLE = /[\p{Cc}\p{Cs}]/u;
// JSON.stringify writes only NUL and lone surrogates as \u0000 and \ud8xx..\udfxx; the same letters after an escaped
// backslash are harmless.
const ESCAPED = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/**
 * Checks an append and encodes it as text.
 * @throws InvalidEvent for empty writes, names with control characters, ids that are no UUID or occur twice, a stream
 * that is written twice, and strings with NUL or lone surrogates (PostgreSQL stores neither).
 */
export function encodeAppend(writes: readonly StreamWrite[], metadata: Metadata): EncodedAppend {
  if (writes.length === 0) throw new InvalidEvent('an append needs at least one write');
  const encoded: EncodedAppend = { writes: [], metadata: encodeJson(metadata, 'metadata'), event_count: 0, size: 0 };
  const streams = writes.length > 1 ? new Set<string>() : undefined;
  const ids = writes.length > 1 || writes[0]!.events.length > 1 ? new Set<string>() : undefined;
  for (const write of writes) {
    if (write.events.length === 0) throw new InvalidEvent(`no events for stream ${write.stream}`);
    checkName(write.stream, 'stream');
    if (streams?.has(write.stream)) throw new InvalidEvent(`stream ${write.stream} is written twice in one append`);
    streams?.add(write.stream);
    const out: EncodedWrite = { stream: write.stream, expected: expectedRevision(write), ids: [], types: [], data: [] };
    for (const event of write.events) {
      if (!validate(event.id)) throw new InvalidEvent(`event id ${JSON.stringify(event.id)} is not a UUID`);
      const id = event.id.toLowerCase();
      if (ids?.has(id)) throw new InvalidEvent(`event id ${id} occurs twice in one append`);
      ids?.add(id);
      checkName(event.type, 'event type');
      const data = encodeJson(event.data, `data of ${event.type}`);
      out.ids.push(id);
      out.types.push(event.type);
      out.data.push(data);
      encoded.size += data.length + event.type.length + 36;
    }
    encoded.event_count += out.ids.length;
    encoded.size += write.stream.length;
    encoded.writes.push(out);
  }
  encoded.size += encoded.metadata.length;
  return encoded;
}

function expectedRevision({ expected, stream }: StreamWrite): number {
  if (expected === 'any') return -2;
  if (expected === 'none') return -1;
  if (!Number.isSafeInteger(expected) || expected < 0)
    throw new InvalidEvent(`stream ${stream}: ${expected} is no revision`);
  return expected;
}

function checkName(name: string, what: string): void {
  if (typeof name !== 'string' || name === '' || name.length > 500 || UNNAMEABLE.test(name))
    throw new InvalidEvent(
      `${what} ${JSON.stringify(name)} must be 1 to 500 characters without control characters or lone surrogates`,
    );
}

function encodeJson(value: unknown, what: string): string {
  const text = JSON.stringify(value);
  if (text === undefined || text[0] !== '{') throw new InvalidEvent(`${what} must be a JSON object`);
  if (text.includes('\\u') && ESCAPED.test(text)) throw new InvalidEvent(`${what} holds NUL or a lone surrogate`);
  return text;
}
