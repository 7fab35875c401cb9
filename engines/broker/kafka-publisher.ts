import { CompressionTypes, type Message, type Producer } from 'kafkajs';
import type { Logger } from '../log/port';
import { isPassing, type KafkaClient, RETRY, sleep, within } from './kafka-client';
import { partitionOf } from './partitioner';
import { InvalidRecord, MAX_VALUE_BYTES, type NewRecord } from './port';

/** Bounds of one send: with the records' own overhead it stays below the topics' `max.message.bytes`, wherever its records go. */
const MAX_SEND_BYTES = 2 * 1024 * 1024;
const MAX_SEND_RECORDS = 4096;
/** Bytes that may wait for their turn. Beyond it publishes are refused at once: a queue without end would only hide that the brokers are behind. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** Share of the time for one try: a silent connection must leave time for another one. */
const TRY_SHARE = 0.6;
/** Rough size of a record beside its key, headers and value. */
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

interface Pending {
  messages: Sized[];
  bytes: number;
  resolve(): void;
  reject(error: Error): void;
}

interface Sized extends Message {
  bytes: number;
}

/**
 * Publishes of one process to one topic: those that arrive in one turn of the event loop, or while a send is on its way, leave in one send.
 * One send is in flight at a time, so that a key's records keep their call order even when a send has to be made again.
 *
 * After any failed send the producer is thrown away and the records are sent by a new one. kafkajs takes back its sequence number when a send
 * fails; when the brokers had stored it after all, the next records would pass for a repetition: acknowledged, never written. A new producer
 * has a new identity, so the worst that can happen is a record stored twice, which is deduplicated behind the log.
 */
export class KafkaPublisher {
  private queue: Pending[] = [];
  private waiting_bytes = 0;
  private running: Promise<void> | undefined;
  private producer: Promise<Producer> | undefined;

  constructor(private readonly options: PublisherOptions) {}

  /** @throws InvalidRecord before anything is sent */
  publish(records: readonly NewRecord[]): Promise<void> {
    const { topic, partitions } = this.options;
    const messages = records.map((record) => encode(record, topic, partitions));
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    if (this.waiting_bytes > MAX_WAITING_BYTES) {
      throw new Error(`kafka takes ${topic} too slowly: ${this.waiting_bytes} bytes are waiting`);
    }
    this.waiting_bytes += bytes;
    return new Promise((resolve, reject) => {
      this.queue.push({ messages, bytes, resolve, reject });
      this.running ??= new Promise<void>((started) => setImmediate(started)).then(() => this.run());
    });
  }

  /** Waits for what was taken, then disconnects. */
  async close(): Promise<void> {
    while (this.running) await this.running;
    const { producer } = this;
    this.producer = undefined;
    await producer?.then((connected) => connected.disconnect()).catch(() => undefined);
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0) {
      const group = this.take();
      const failure = await this.deliver(group);
      if (failure && group.length > 1 && !isPassing(failure)) {
        // One of them is refused for what it is: the others must not fail with it.
        for (const pending of group) settle(pending, await this.deliver([pending]));
      } else {
        for (const pending of group) settle(pending, failure);
      }
      for (const { bytes } of group) this.waiting_bytes -= bytes;
      // The callers just answered get their turn, so that what they publish next joins the next send.
      await new Promise<void>((resume) => setImmediate(resume));
    }
    this.running = undefined;
  }

  private take(): Pending[] {
    let taken = 0;
    let records = 0;
    let bytes = 0;
    for (const pending of this.queue) {
      records += pending.messages.length;
      bytes += pending.bytes;
      if (taken > 0 && (records > MAX_SEND_RECORDS || bytes > MAX_SEND_BYTES)) break;
      taken += 1;
    }
    return this.queue.splice(0, taken);
  }

  /** Why it failed, or undefined. A publish that is larger than one send leaves in several, in order. */
  private async deliver(group: readonly Pending[]): Promise<Error | undefined> {
    const give_up_at = Date.now() + this.options.timeout_ms;
    const all = group.length === 1 ? group[0]!.messages : group.flatMap(({ messages }) => messages);
    try {
      for (let from = 0; from < all.length;) {
        let to = from;
        for (let bytes = 0; to < all.length && to - from < MAX_SEND_RECORDS; to += 1) {
          bytes += all[to]!.bytes;
          if (to > from && bytes > MAX_SEND_BYTES) break;
        }
        await this.send(from === 0 && to === all.length ? all : all.slice(from, to), give_up_at);
        from = to;
      }
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  private async send(messages: Message[], give_up_at: number): Promise<void> {
    const { topic, timeout_ms, log } = this.options;
    for (let pause_ms = 20; ; pause_ms = Math.min(pause_ms * 2, 500)) {
      const producer = (this.producer ??= this.open());
      const sending = producer.then((connected) =>
        connected.send({ topic, messages, acks: -1, timeout: timeout_ms, compression: CompressionTypes.None }),
      );
      try {
        const try_ms = Math.max(500, Math.min(timeout_ms * TRY_SHARE, give_up_at - Date.now()));
        await within(sending, try_ms, `kafka, sending to ${topic}`);
        return;
      } catch (error) {
        this.discard(producer, sending);
        log?.warn(
          { err: error as unknown, topic, records: messages.length },
          'a send failed, its producer is replaced',
        );
        if (!isPassing(error) || Date.now() + pause_ms > give_up_at) throw error;
        await sleep(pause_ms * (0.5 + Math.random()));
      }
    }
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
    // A send that was left behind connects again for its own retries: closed once more when it has ended.
    sending.then(disconnect, disconnect);
  }
}

function settle({ resolve, reject }: Pending, failure: Error | undefined): void {
  if (failure) reject(failure);
  else resolve();
}

function encode({ key, value, headers }: NewRecord, topic: string, partitions: number): Sized {
  if (key.includes('\0')) throw new InvalidRecord(`a record key of ${topic} holds a NUL character`);
  if (value.length > MAX_VALUE_BYTES) {
    throw new InvalidRecord(`a record of ${topic} has ${value.length} bytes, the log takes ${MAX_VALUE_BYTES}`);
  }
  let bytes = RECORD_OVERHEAD + Buffer.byteLength(key) + value.length;
  for (const name in headers) bytes += name.length + headers[name]!.length;
  return { key, value, partition: partitionOf(key, partitions), bytes, ...(headers && { headers: { ...headers } }) };
}
