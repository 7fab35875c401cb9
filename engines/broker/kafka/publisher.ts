import { CompressionTypes, type Message, type Producer, type RecordMetadata } from 'kafkajs';
import { slices } from '../../../lib/async/collector';
import { retry, type Try } from '../../../lib/async/retry';
import type { Logger } from '../../log/port';
import { EngineUnavailable } from '../../../kernel/failures';
import { answered, isPassingAtKafka, type KafkaClient, RETRY } from './client';
import { partitionOf } from '../partitioner';
import type { Ends, NewRecord } from '../port';
import { assertStorable, type Publish, PublishQueue } from '../postgres/publish-queue';

/**
 * Bounds of one send: with the records' own overhead it stays below the topics' `max.message.bytes`, wherever its
 * records go.
 */
const SEND_BOUNDS = { items: 4096, bytes: 2 * 1024 * 1024 };
/** Share of the time for one try: a silent connection must leave time for another one. */
const TRY_SHARE = 0.6;
/** Rough size of a record without its key, headers and value. */
const RECORD_OVERHEAD = 32;

export interface PublisherOptions {
  client: KafkaClient;
  topic: string;
  partitions: number;
  /** Milliseconds within which a group is tried; then its publishes reject. */
  timeout_ms: number;
  log: Logger | undefined;
  onReplaced(): void;
}

interface Sized extends Message {
  partition: number;
  bytes: number;
}

/**
 * Publishes of one process to one topic, several in one send.
 *
 * After any failed send the producer is discarded and a new one sends the records. kafkajs takes back its sequence
 * number when a send fails; if the brokers had stored the batch after all, they would take the next records for a
 * repetition: acknowledged, never written. A new producer has a new identity, so that at worst a record is stored
 * twice, which is deduplicated behind the log.
 */
export class KafkaPublisher {
  private readonly queue: PublishQueue<Sized>;
  private producer: Promise<Producer> | undefined;

  constructor(private readonly options: PublisherOptions) {
    this.queue = new PublishQueue({
      topic: options.topic,
      bounds: SEND_BOUNDS,
      send: (group) => this.sendGroup(group),
    });
  }

  /** @throws InvalidRecord before anything is sent */
  publish(records: readonly NewRecord[]): Promise<Ends> {
    const { topic, partitions } = this.options;
    const messages = records.map((record) => encode(record, topic, partitions));
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    return this.queue.add(messages, bytes);
  }

  /** Waits for the accepted records, then disconnects. */
  async close(): Promise<void> {
    await this.queue.idle();
    const { producer } = this;
    this.producer = undefined;
    await producer?.then((connected) => connected.disconnect()).catch(() => undefined);
  }

  private async sendGroup(group: readonly Publish<Sized>[]): Promise<(Ends | Error)[]> {
    const sent = await this.deliver(group);
    if (!(sent instanceof Error)) return sent;
    if (isPassingAtKafka(sent)) throw new EngineUnavailable('kafka', sent);
    if (group.length === 1) throw sent;
    // Sends each publish alone, so that the others do not fail with the one that is refused.
    const outcomes: (Ends | Error)[] = [];
    for (const publish of group) {
      const alone = await this.deliver([publish]);
      outcomes.push(alone instanceof Error ? alone : alone[0]!);
    }
    return outcomes;
  }

  /** Ends of each publish, or the error of all. A publish larger than one send is split into several, in order. */
  private async deliver(group: readonly Publish<Sized>[]): Promise<Ends[] | Error> {
    const give_up_at = performance.now() + this.options.timeout_ms;
    const all = group.length === 1 ? group[0]!.items : group.flatMap(({ items }) => items);
    /** Offset after each message. */
    const ends: number[] = [];
    try {
      for (const messages of slices(all, SEND_BOUNDS, ({ bytes }) => ({ items: 1, bytes }))) {
        const next = await this.send(messages, give_up_at);
        for (const { partition } of messages) ends.push(next(partition));
      }
      let at = 0;
      return group.map(({ items }) => new Map(items.map(({ partition }) => [partition, ends[at++]!])));
    } catch (error) {
      return error as Error;
    }
  }

  /** Resolves with a counter: each call returns the offset after the partition's next message. */
  private async send(messages: readonly Sized[], give_up_at: number): Promise<(partition: number) => number> {
    const { topic, timeout_ms, log } = this.options;
    const attempt = async ({ left_ms }: Try) => {
      const producer = (this.producer ??= this.open());
      const sending = producer.then((connected) =>
        connected.send({
          topic,
          messages: messages as Sized[],
          acks: -1,
          timeout: timeout_ms,
          compression: CompressionTypes.None,
        }),
      );
      try {
        const try_ms = Math.max(500, Math.min(timeout_ms * TRY_SHARE, left_ms));
        return await this.counter(await answered(sending, try_ms, `kafka, sending to ${topic}`));
      } catch (error) {
        this.discard(producer, sending);
        const facts = { err: error, topic, records: messages.length };
        log?.warn(facts, 'a send failed, its producer is replaced');
        throw error;
      }
    };
    const within_ms = give_up_at - performance.now();
    return retry(attempt, { first_ms: 30, most_ms: 500, within_ms, passing: isPassingAtKafka });
  }

  /**
   * Counts from the base offsets that the broker returned. A broker that had stored the batch before returns none; then
   * the partition's end stands for it, which is behind the batch.
   */
  private async counter(sent: readonly RecordMetadata[]): Promise<(partition: number) => number> {
    const { client, topic } = this.options;
    const said = new Map(sent.map(({ partition, baseOffset = '-1' }) => [partition, Number(baseOffset)]));
    const bounds = [...said.values()].some((base) => base < 0) ? await client.bounds(topic) : undefined;
    return (partition) => {
      const base = said.get(partition) ?? -1;
      if (base < 0) return bounds?.get(partition)?.next ?? 0;
      said.set(partition, base + 1);
      return base + 1;
    };
  }

  private async open(): Promise<Producer> {
    const { client } = this.options;
    const producer = client.kafka.producer({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      retry: RETRY,
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition!,
    });
    try {
      await producer.connect();
    } catch (error) {
      producer.disconnect().catch(() => undefined);
      throw error;
    }
    return producer;
  }

  private discard(producer: Promise<Producer>, sending: Promise<unknown>): void {
    if (this.producer === producer) {
      this.producer = undefined;
      this.options.onReplaced();
    }
    const disconnect = () =>
      void producer
        .then((connected) => connected.disconnect())
        .catch((error: Error) => this.options.log?.debug({ err: error }, 'kafka: a producer ended badly'));
    disconnect();
    // An abandoned send connects again for its own retries, so that the producer is closed again after it.
    sending.then(disconnect, disconnect);
  }
}

function encode(record: NewRecord, topic: string, partitions: number): Sized {
  assertStorable(topic, record);
  const { key, value, headers } = record;
  let bytes = RECORD_OVERHEAD + Buffer.byteLength(key) + value.length;
  for (const name in headers) bytes += name.length + headers[name]!.length;
  return { key, value, partition: partitionOf(key, partitions), bytes, ...(headers && { headers: { ...headers } }) };
}
