import { createErrorFromCode } from 'kafkajs/src/protocol/error';
import { retry } from '../../../lib/async/retry';
import { answered, isPassingAtKafka, type KafkaClient, REQUEST_TIMEOUT_MS, typeOf } from './client';
import { type FetchLimits, KafkaFetcher, NOBODY } from './fetch/fetcher';
import { decodeRecords } from './fetch/records';
import { type BrokerRecord, OffsetOutOfRange } from '../port';

const PAGE_BYTES = 4 * 1024 * 1024;
const LIMITS: FetchLimits = { wait_ms: 100, max_bytes: PAGE_BYTES, partition_bytes: PAGE_BYTES };
/** How long a page is tried before the reader gives up. */
const PAGE_TIMEOUT_MS = 30_000;

export interface Page {
  records: BrokerRecord[];
  /** Offset after the page: beyond its last record, or beyond what is no record (markers of a transaction). */
  next: number;
}

/**
 * Reads ranges of a partition straight from its leader. kafkajs offers reading to members of a group only; a group made
 * for one read would wait for its first rebalance (3 s by default), need rights on group names that nobody knows
 * beforehand, and stay behind.
 */
export class KafkaReader {
  private fetcher: KafkaFetcher | undefined;
  private readonly closing = new AbortController();

  constructor(private readonly client: KafkaClient) {}

  /** @throws OffsetOutOfRange when `from` is not in the log */
  async page(topic: string, partition: number, from: number): Promise<Page> {
    const attempt = async () => {
      const fetcher = (this.fetcher ??= new KafkaFetcher(this.client));
      const reading = fetch(fetcher, topic, partition, from);
      try {
        const page = await answered(reading, REQUEST_TIMEOUT_MS, `reading ${topic}/${partition}`);
        if (page.next > from) return page;
      } catch (error) {
        if (typeOf(error) === 'OFFSET_OUT_OF_RANGE') {
          const bounds = (await this.client.bounds(topic)).get(partition)!;
          // A leader that has just taken over may not know its end yet.
          if (from < bounds.earliest || from > bounds.next) throw new OffsetOutOfRange(topic, partition, from, bounds);
        }
        this.discard(fetcher);
        throw error;
      }
      throw new Error(`${topic}/${partition}: nothing comes at offset ${from}`);
    };
    return retry(attempt, {
      first_ms: 20,
      most_ms: 1_000,
      within_ms: PAGE_TIMEOUT_MS,
      signal: this.closing.signal,
      passing: (error) => typeOf(error) === 'OFFSET_OUT_OF_RANGE' || isPassingAtKafka(error),
    });
  }

  async close(): Promise<void> {
    this.closing.abort(new Error('the reader is closed'));
    await this.fetcher?.close().catch(() => undefined);
  }

  private discard(fetcher: KafkaFetcher): void {
    if (this.fetcher === fetcher) this.fetcher = undefined;
    fetcher.close().catch(() => undefined);
  }
}

async function fetch(fetcher: KafkaFetcher, topic: string, partition: number, from: number): Promise<Page> {
  const [leader] = (await fetcher.leaders(topic, [partition])).keys();
  if (leader === undefined || leader === NOBODY) throw new Error(`${topic}/${partition} has no leader`);
  const [fetched] = await fetcher.fetch(leader, topic, [[partition, from]], LIMITS);
  if (!fetched) return { records: [], next: from };
  if (fetched.error !== 0) throw createErrorFromCode(fetched.error);
  return decodeRecords(topic, from, fetched);
}
