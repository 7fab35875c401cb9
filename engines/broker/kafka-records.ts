import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { BrokerRecord } from './port';

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});
const NO_BYTES = Buffer.alloc(0);

/** Kafka's messages of one partition as the port's records; values are views into what was fetched. */
export function toRecords(topic: string, partition: number, messages: readonly KafkaMessage[]): BrokerRecord[] {
  // One account's records follow each other, and so do their times: the last text is mostly the next one.
  let key_bytes: Buffer | undefined;
  let key = '';
  let timestamp = '';
  let appended_at = '';
  return messages.map((message) => {
    const bytes = message.key ?? NO_BYTES;
    if (!key_bytes?.equals(bytes)) {
      key_bytes = bytes;
      key = bytes.toString();
    }
    if (message.timestamp !== timestamp) {
      ({ timestamp } = message);
      appended_at = new Date(Number(timestamp)).toISOString();
    }
    return {
      topic,
      partition,
      offset: Number(message.offset),
      key,
      value: message.value ?? NO_BYTES,
      headers: message.headers ? texts(message.headers) : NO_HEADERS,
      appended_at,
    };
  });
}

function texts(headers: IHeaders): Readonly<Record<string, string>> {
  const entries = Object.entries(headers);
  if (entries.length === 0) return NO_HEADERS;
  return Object.fromEntries(entries.map(([name, value]) => [name, String(Array.isArray(value) ? value[0] : value)]));
}
