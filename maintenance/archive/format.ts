import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { streams, Type } from 'avsc';
import type { BrokerRecord } from '../../engines/broker/port';

/** Record of a segment, with the broker's bytes: personal parts stay encrypted. */
interface ArchivedRecord {
  offset: number;
  appended_at: string;
  key: string;
  headers: Record<string, string>;
  value: Buffer;
}

const RECORD = Type.forSchema({
  type: 'record',
  name: 'ArchivedRecord',
  namespace: 'lumio.archive',
  fields: [
    { name: 'offset', type: 'long' },
    { name: 'appended_at', type: 'string' },
    { name: 'key', type: 'string' },
    { name: 'headers', type: { type: 'map', values: 'string' } },
    { name: 'value', type: 'bytes' },
  ],
});

export const SEGMENT_CONTENT_TYPE = 'application/vnd.apache.avro';
const RECORDS_PER_BATCH = 1000;

/** Encodes a segment as an Avro object container (deflate), which any Avro reader opens. */
export function encodeSegment(records: Iterable<BrokerRecord> | AsyncIterable<BrokerRecord>): Readable {
  const encoder = new streams.BlockEncoder(RECORD, { codec: 'deflate', blockSize: 256 * 1024 }) as unknown as Writable &
    Readable;
  const rows = async function* () {
    for await (const { offset, appended_at, key, headers, value } of records)
      yield { offset, appended_at, key, headers, value };
  };
  // A failure on either side ends the other; the encoder's reader receives it.
  pipeline(Readable.from(rows()), encoder).catch((error: Error) => encoder.destroy(error));
  return encoder;
}

/**
 * Decodes the records of a segment in batches, in the order in which they were written.
 * @throws Error when the container is truncated or damaged, or the source fails
 */
export async function* decodeSegment(
  content: Readable,
  topic: string,
  partition: number,
): AsyncGenerator<BrokerRecord[]> {
  const decoder = new streams.BlockDecoder({ parseHook: () => RECORD }) as unknown as Writable & Readable;
  const failed = pipeline(content, decoder);
  failed.catch((error: Error) => decoder.destroy(error));
  let batch: BrokerRecord[] = [];
  for await (const { offset, appended_at, key, headers, value } of decoder as AsyncIterable<ArchivedRecord>) {
    batch.push({ topic, partition, offset, appended_at, key, headers, value });
    if (batch.length >= RECORDS_PER_BATCH) {
      yield batch;
      batch = [];
    }
  }
  await failed;
  if (batch.length > 0) yield batch;
}
