import type { BrokerRecord } from '../port';

const HEAD = 28;
/** Microseconds from 1970 to 2000, where PostgreSQL counts from. */
const EPOCH_MICROS = 946_684_800_000_000;
export const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/** Takes the records of one partition out of what `broker_read` packed; values are views into that buffer. */
export function unpack(topic: string, partition: number, packed: Buffer, into: BrokerRecord[]): void {
  // One account's records follow each other, and so do their times: the last text is mostly the next one.
  let key_bytes: Buffer | undefined;
  let key = '';
  let micros = -1;
  let appended_at = '';
  for (let at = 0; at < packed.length;) {
    const offset = packed.readUInt32BE(at) * 0x1_0000_0000 + packed.readUInt32BE(at + 4);
    const time = packed.readInt32BE(at + 8) * 0x1_0000_0000 + packed.readUInt32BE(at + 12);
    const key_end = at + HEAD + packed.readInt32BE(at + 16);
    const headers_end = key_end + packed.readInt32BE(at + 20);
    const end = headers_end + packed.readInt32BE(at + 24);
    const key_view = packed.subarray(at + HEAD, key_end);
    if (!key_bytes?.equals(key_view)) {
      key_bytes = key_view;
      key = key_view.toString();
    }
    if (time !== micros) {
      micros = time;
      appended_at = instant(time + EPOCH_MICROS);
    }
    const headers: Readonly<Record<string, string>> =
      headers_end > key_end
        ? (JSON.parse(packed.toString('utf8', key_end, headers_end)) as Record<string, string>)
        : NO_HEADERS;
    into.push({ topic, partition, offset, key, value: packed.subarray(headers_end, end), headers, appended_at });
    at = end;
  }
}

/** RFC 3339 UTC of microseconds since 1970, always with six digits. */
export function instant(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const rest = String(micros - seconds * 1_000_000).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${rest}Z`;
}
