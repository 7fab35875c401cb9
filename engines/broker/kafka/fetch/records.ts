import type { IHeaders, KafkaMessage } from 'kafkajs';
import Batch from 'kafkajs/src/consumer/batch';
import Decoder from 'kafkajs/src/protocol/decoder';
import { createErrorFromCode } from 'kafkajs/src/protocol/error';
import decodeMessages from 'kafkajs/src/protocol/requests/fetch/v4/decodeMessages';
import type { BrokerRecord } from '../../port';

/** Part of a fetch response for a single partition. */
export interface FetchedPartition {
  partition: number;
  /** Kafka's error code; 0 for success. */
  error: number;
  /** Offset after the last record that a fetch may bring. */
  end: number;
  /** Aborted transactions among the records. */
  aborted: { producerId: string; firstOffset: string }[];
  /** Record batches as the log holds them; the last one may be cut off. */
  data: Buffer;
}

/** A fetch response of version 11, its records untouched. @throws Error when the whole request was refused */
export function decodeFetchResponse(payload: Buffer): FetchedPartition[] {
  const cursor = new Cursor(payload, 4);
  const refused = cursor.int16();
  if (refused !== 0) throw createErrorFromCode(refused);
  cursor.at += 4;
  const found: FetchedPartition[] = [];
  for (let topics = cursor.int32(); topics > 0; topics -= 1) {
    const name_bytes = cursor.int16();
    cursor.at += name_bytes;
    for (let partitions = cursor.int32(); partitions > 0; partitions -= 1) {
      const partition = cursor.int32();
      const error = cursor.int16();
      cursor.at += 8;
      const end = cursor.int64();
      cursor.at += 8;
      const aborted: FetchedPartition['aborted'] = [];
      for (let count = cursor.int32(); count > 0; count -= 1)
        aborted.push({ producerId: cursor.bigint(), firstOffset: cursor.bigint() });
      cursor.at += 4;
      const bytes = Math.max(0, cursor.int32());
      found.push({ partition, error, end, aborted, data: payload.subarray(cursor.at, (cursor.at += bytes)) });
    }
  }
  return found;
}

// Byte positions of a record batch's parts, and the bits of its attributes.
const LENGTH_AT = 8;
const LENGTH_END = 12;
const MAGIC_AT = 16;
const ATTRIBUTES_AT = 21;
const LAST_DELTA_AT = 23;
const FIRST_TIME_AT = 27;
const MAX_TIME_AT = 35;
const COUNT_AT = 57;
const RECORDS_AT = 61;
const MAGIC = 2;
const COMPRESSED = 0x07;
const LOG_APPEND_TIME = 0x08;
const TRANSACTIONAL_OR_CONTROL = 0x30;

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});
const NO_BYTES = Buffer.alloc(0);

/** Records of one partition from an offset on, and the offset after them. Values are views into the response. */
export async function decodeRecords(
  topic: string,
  from: number,
  fetched: FetchedPartition,
): Promise<{ records: BrokerRecord[]; next: number }> {
  const { partition, data } = fetched;
  const records: BrokerRecord[] = [];
  let next = from;
  let plain = true;
  for (let at = 0; at + RECORDS_AT <= data.length;) {
    const end = at + LENGTH_END + data.readInt32BE(at + LENGTH_AT);
    if (end > data.length) break;
    const is_batch = data[at + MAGIC_AT] === MAGIC;
    const attributes = is_batch ? data.readInt16BE(at + ATTRIBUTES_AT) : 0;
    plain &&= is_batch && (attributes & (COMPRESSED | TRANSACTIONAL_OR_CONTROL)) === 0;
    if (plain) decodeBatch(topic, partition, from, data.subarray(at, end), records);
    next = Math.max(next, int64(data, at) + (is_batch ? data.readInt32BE(at + LAST_DELTA_AT) : 0) + 1);
    at = end;
  }
  // Batches of other producers: compressed, in transactions, or in the form before Kafka 0.11.
  if (!plain) return { records: await decodeOtherwise(topic, from, fetched), next };
  if (next === from && data.length > 0) throw new Error(`${topic}/${partition}: no whole batch at offset ${from}`);
  return { records, next };
}

function decodeBatch(topic: string, partition: number, from: number, batch: Buffer, into: BrokerRecord[]): void {
  const first_offset = int64(batch, 0);
  const by_broker = (batch.readInt16BE(ATTRIBUTES_AT) & LOG_APPEND_TIME) !== 0;
  const first_time = int64(batch, by_broker ? MAX_TIME_AT : FIRST_TIME_AT);
  const cursor = new Cursor(batch, RECORDS_AT);
  let time = -1;
  let appended_at = '';
  for (let count = batch.readInt32BE(COUNT_AT); count > 0; count -= 1) {
    const end = cursor.varint() + cursor.at;
    cursor.at += 1;
    const delta = cursor.varlong();
    const offset = first_offset + cursor.varint();
    const key = cursor.text();
    const value = cursor.bytes();
    const headers = cursor.headers();
    if (cursor.at !== end) throw new Error(`${topic}/${partition}: the record at offset ${offset} is malformed`);
    if (offset < from) continue;
    const now = by_broker ? first_time : first_time + delta;
    if (now !== time) {
      time = now;
      appended_at = new Date(now).toISOString();
    }
    into.push({ topic, partition, offset, key, value, headers, appended_at });
  }
}

/** Decodes with kafkajs, which reads every form. */
async function decodeOtherwise(
  topic: string,
  from: number,
  { partition, end, aborted, data }: FetchedPartition,
): Promise<BrokerRecord[]> {
  const size = Buffer.alloc(4);
  size.writeInt32BE(data.length);
  const messages = await decodeMessages(new Decoder(Buffer.concat([size, data])));
  const batch = new Batch(topic, String(from), {
    partition,
    highWatermark: String(end),
    abortedTransactions: aborted,
    messages,
  });
  return batch.messages.map((message) => ({
    topic,
    partition,
    offset: Number(message.offset),
    key: message.key?.toString() ?? '',
    value: message.value ?? NO_BYTES,
    headers: headersOf(message),
    appended_at: new Date(Number(message.timestamp)).toISOString(),
  }));
}

function headersOf({ headers = {} }: KafkaMessage & { headers?: IHeaders }): Readonly<Record<string, string>> {
  const entries = Object.entries(headers);
  if (entries.length === 0) return NO_HEADERS;
  return Object.fromEntries(entries.map(([name, value]) => [name, String(Array.isArray(value) ? value[0] : value)]));
}

/** Offsets and times stay below 2^53. */
const int64 = (data: Buffer, at: number): number => data.readInt32BE(at) * 0x1_0000_0000 + data.readUInt32BE(at + 4);

/** Reads Kafka's primitive types one after the other. */
class Cursor {
  // Cache of the last text, because consecutive records often have the same account as key.
  private text_at = 0;
  private text_end = -1;
  private last_text = '';

  constructor(
    private readonly data: Buffer,
    public at: number,
  ) {}

  int16(): number {
    const value = this.data.readInt16BE(this.at);
    this.at += 2;
    return value;
  }

  int32(): number {
    const value = this.data.readInt32BE(this.at);
    this.at += 4;
    return value;
  }

  int64(): number {
    const value = int64(this.data, this.at);
    this.at += 8;
    return value;
  }

  bigint(): string {
    const value = this.data.readBigInt64BE(this.at);
    this.at += 8;
    return String(value);
  }

  varint(): number {
    const { data } = this;
    let byte = data[this.at++]!;
    let value = byte & 0x7f;
    for (let shift = 7; byte > 0x7f; shift += 7) {
      byte = data[this.at++]!;
      value |= (byte & 0x7f) << shift;
    }
    return (value >>> 1) ^ -(value & 1);
  }

  varlong(): number {
    const { data } = this;
    let byte = data[this.at++]!;
    let value = byte & 0x7f;
    for (let unit = 128; byte > 0x7f; unit *= 128) {
      byte = data[this.at++]!;
      value += (byte & 0x7f) * unit;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** Reads bytes; empty for null. */
  bytes(): Buffer {
    const length = this.varint();
    return length <= 0 ? NO_BYTES : this.data.subarray(this.at, (this.at += length));
  }

  text(): string {
    const length = this.varint();
    if (length <= 0) return '';
    const { data, at } = this;
    this.at += length;
    if (this.text_end - this.text_at !== length || data.compare(data, this.text_at, this.text_end, at, this.at) !== 0) {
      this.text_at = at;
      this.text_end = this.at;
      this.last_text = data.toString('utf8', at, this.at);
    }
    return this.last_text;
  }

  /** Reads headers; of a repeated name the first value counts. */
  headers(): Readonly<Record<string, string>> {
    const count = this.varint();
    if (count === 0) return NO_HEADERS;
    const headers: Record<string, string> = {};
    for (let n = 0; n < count; n += 1) {
      const name_end = this.varint() + this.at;
      const name = this.data.toString('utf8', this.at, name_end);
      this.at = name_end;
      const value = this.bytes().toString();
      headers[name] ??= value;
    }
    return headers;
  }
}
