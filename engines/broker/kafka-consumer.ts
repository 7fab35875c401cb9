import type { Consumer as KafkaGroupMember, EachBatchPayload } from 'kafkajs';
import type { Logger } from '../log/port';
import type { Counter } from '../metrics/port';
import { KafkaBuffer } from './kafka-buffer';
import { type KafkaClient, RETRY, sleep, within } from './kafka-client';
import type { KafkaReader } from './kafka-reader';
import { toRecords } from './kafka-records';
import { type BrokerRecord, type ConsumeOptions, type Consumer, OffsetOutOfRange } from './port';

export interface KafkaConsumerTimes {
  /** A member that is silent so long is taken out of its group. Brokers allow 6 s to 30 min by default. */
  session_ms: number;
  /** How long a rebalance waits for members that are busy. */
  rebalance_ms: number;
  /** Behind, or without a fetch, and without a batch for so long: started again. */
  stall_ms: number;
  /** Longest pause between two starts. */
  backoff_ms: number;
}

export const CONSUMER_TIMES: KafkaConsumerTimes = {
  session_ms: 8_000,
  rebalance_ms: 10_000,
  stall_ms: 20_000,
  backoff_ms: 5_000,
};

export interface KafkaConsumerDeps {
  client: KafkaClient;
  reader: KafkaReader;
  log: Logger | undefined;
  times: KafkaConsumerTimes;
  restarts: Counter | undefined;
}

/** Longest wait of a fetch for news; also how long a stop may take. */
const FETCH_WAIT_MS = 500;
const FETCH_BYTES = 8 * 1024 * 1024;
const FETCH_PARTITION_BYTES = 1024 * 1024;
const COMMIT_EVERY_MS = 5_000;
const LET_GO_MS = 3_000;
/** Rebalances within half a minute that end a member: it waits a while instead of turning with the storm. */
const STORM = 15;
const STORM_MS = 30_000;
/** A leader that has just taken over may report an end below the true one for a moment. */
const BEYOND_END_TRIES = 6;

/**
 * One member of a group, over as many kafkajs consumers as it takes: one that crashes, stalls or turns in a storm of rebalances is thrown away
 * and the next one begins at the caller's checkpoint. What was fetched waits in a bounded buffer, apart from the fetching: heartbeats and
 * rebalances go on while `onBatch` works. A batch that is in hand when its partition goes to another member is fenced by the caller's
 * checkpoint, not by the group.
 */
export class KafkaConsumer implements Consumer {
  readonly done: Promise<void>;
  private readonly buffer: KafkaBuffer;
  private stopping = false;
  private failure: Error | undefined;
  private member: KafkaGroupMember | undefined;
  private generation = 0;
  /** Per assigned partition the offset that the next fetched record should have. */
  private readonly expected = new Map<number, number>();
  private in_hand: Promise<void> | undefined;
  private endLife: (why: Error | undefined) => void = () => undefined;
  private wakePause: () => void = () => undefined;
  private failures = 0;
  private progressed_at = 0;
  private fetched_at = 0;
  private committed_at = 0;
  private looking = false;

  constructor(
    private readonly options: ConsumeOptions,
    private readonly deps: KafkaConsumerDeps,
  ) {
    this.buffer = new KafkaBuffer(options.topic, options.max_records ?? 1000);
    this.done = this.run();
    // Whoever watches `done` sees the rejection; a consumer that nobody watches must not end the process.
    this.done.catch((error: Error) => deps.log?.error({ err: error, ...this.names }, 'consumer stopped'));
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.buffer.clear();
    this.endLife(undefined);
    this.wakePause();
    await this.done.catch(() => undefined);
  }

  private get names() {
    return { topic: this.options.topic, group: this.options.group };
  }

  private async run(): Promise<void> {
    const { log, restarts, times } = this.deps;
    while (!this.stopping && !this.failure) {
      const why = await this.live();
      if (this.stopping || this.failure) break;
      this.failures += 1;
      restarts?.inc(1, { ...this.names, reason: why?.name ?? 'unknown' });
      log?.warn({ err: why, failures: this.failures, ...this.names }, 'a kafka consumer ended, starting another one');
      await this.pause(Math.min(times.backoff_ms, 100 * 2 ** this.failures) * (0.5 + Math.random() / 2));
    }
    await this.in_hand;
    if (this.failure) throw this.failure;
  }

  /** One kafkajs consumer, from its first connection to its end; why it ended. */
  private async live(): Promise<Error | undefined> {
    const { client, times, log } = this.deps;
    const { topic, group } = this.options;
    const member = client.kafka.consumer({
      groupId: group,
      sessionTimeout: times.session_ms,
      rebalanceTimeout: times.rebalance_ms,
      heartbeatInterval: Math.floor(times.session_ms / 4),
      maxWaitTimeInMs: FETCH_WAIT_MS,
      maxBytes: FETCH_BYTES,
      maxBytesPerPartition: FETCH_PARTITION_BYTES,
      allowAutoTopicCreation: false,
      // Its own restarts would keep what broke it: a crash ends this consumer, and we make another one.
      retry: { ...RETRY, retries: 4, restartOnFailure: () => Promise.resolve(false) },
    });
    this.member = member;
    const ended = new Promise<Error | undefined>((resolve) => (this.endLife = resolve));
    const rebalances: number[] = [];
    member.on(member.events.CRASH, ({ payload }) => this.endLife(payload.error));
    member.on(member.events.GROUP_JOIN, ({ payload }) => this.assigned(member, payload.memberAssignment[topic] ?? []));
    member.on(member.events.FETCH, () => void (this.fetched_at = performance.now()));
    member.on(member.events.REBALANCING, () => {
      rebalances.push(performance.now());
      if (rebalances.length > STORM && performance.now() - rebalances.shift()! < STORM_MS)
        this.endLife(new Error(`${STORM} rebalances within ${STORM_MS} ms`));
    });
    this.fetched_at = this.progressed_at = performance.now();
    const watch = setInterval(() => this.watch(), Math.min(times.stall_ms / 4, 5_000));
    const start = async () => {
      await member.connect();
      await member.subscribe({ topics: [topic], fromBeginning: true });
      await member.run({ autoCommit: false, eachBatch: (payload) => this.take(member, payload) });
    };
    start().catch((error: Error) => this.endLife(error));
    if (this.stopping) this.endLife(undefined);
    try {
      return await ended;
    } finally {
      clearInterval(watch);
      this.member = undefined;
      this.forget();
      await within(member.disconnect(), LET_GO_MS, 'leaving the group').catch((error: Error) =>
        log?.debug({ err: error, ...this.names }, 'a kafka consumer did not end cleanly'),
      );
    }
  }

  /** What was fetched belongs to an assignment that is over. */
  private forget(): number {
    this.buffer.clear();
    this.expected.clear();
    return (this.generation += 1);
  }

  /** Called between joining and the first fetch: nothing is fetched before the caller has said from where. */
  private assigned(member: KafkaGroupMember, partitions: number[]): void {
    const generation = this.forget();
    this.fetched_at = this.progressed_at = performance.now();
    if (partitions.length === 0 || member !== this.member) return;
    member.pause([{ topic: this.options.topic, partitions }]);
    this.position(member, partitions, generation).catch((error: Error) => {
      if (generation === this.generation) this.endLife(error);
    });
  }

  private async position(member: KafkaGroupMember, partitions: number[], generation: number): Promise<void> {
    const { topic } = this.options;
    // A batch of the last assignment may still move the checkpoint.
    await this.in_hand;
    if (generation !== this.generation) return;
    const starts = await this.options.start(partitions).catch((error: Error) => this.fail(error));
    if (!starts) return;
    let bounds = await this.deps.client.bounds(topic);
    for (const partition of partitions) {
      const from = starts.get(partition) ?? bounds.get(partition)!.earliest;
      for (let tries = 0; from > bounds.get(partition)!.next && tries < BEYOND_END_TRIES; tries += 1) {
        await sleep(500);
        bounds = await this.deps.client.bounds(topic);
      }
      const { earliest, next } = bounds.get(partition)!;
      if (generation !== this.generation) return;
      if (from < earliest || from > next) {
        this.fail(new OffsetOutOfRange(topic, partition, from, { earliest, next }));
        return;
      }
      this.expected.set(partition, from);
      this.buffer.open(partition, from);
      member.seek({ topic, partition, offset: String(from) });
    }
    member.resume([{ topic, partitions }]);
  }

  /** Takes what was fetched from one partition, and holds the fetching while the buffer is full. */
  private async take(member: KafkaGroupMember, { batch, heartbeat, isRunning }: EachBatchPayload): Promise<void> {
    const { generation } = this;
    const { topic, partition } = batch;
    const expected = this.expected.get(partition);
    if (expected === undefined || batch.messages.length === 0) return;
    const next = Number(batch.lastOffset()) + 1;
    let records = toRecords(topic, partition, batch.messages);
    const first = records[0]!.offset;
    try {
      if (first > expected) records = [...(await this.missing(partition, expected, first)), ...records];
      if (first < expected) {
        records = records.filter(({ offset }) => offset >= expected);
        if (records.length === 0) return await this.reread(member, partition, expected, generation);
      }
    } catch (error) {
      if (error instanceof OffsetOutOfRange) return this.fail(error);
      throw error;
    }
    if (generation !== this.generation) return;
    this.expected.set(partition, next);
    this.buffer.add(partition, records, next);
    this.pump();
    while (this.buffer.full && generation === this.generation && isRunning() && !this.stopping && !this.failure) {
      await this.buffer.drained(Math.floor(this.deps.times.session_ms / 4));
      await heartbeat();
    }
  }

  /** kafkajs goes on at the earliest record when an offset is out of range, and passes over markers: nothing between is taken on trust. */
  private async missing(partition: number, from: number, to: number): Promise<BrokerRecord[]> {
    const found: BrokerRecord[] = [];
    for (let at = from; at < to;) {
      const page = await this.deps.reader.page(this.options.topic, partition, at);
      for (const record of page.records) if (record.offset < to) found.push(record);
      at = page.next;
    }
    return found;
  }

  private async reread(
    member: KafkaGroupMember,
    partition: number,
    expected: number,
    generation: number,
  ): Promise<void> {
    const { topic } = this.options;
    const bounds = (await this.deps.client.bounds(topic)).get(partition)!;
    if (expected > bounds.next) throw new OffsetOutOfRange(topic, partition, expected, bounds);
    if (generation === this.generation) member.seek({ topic, partition, offset: String(expected) });
  }

  /** Works off the buffer, one batch at a time. */
  private pump(): void {
    this.in_hand ??= new Promise<void>((started) => setImmediate(started)).then(async () => {
      try {
        for (let batch = this.buffer.take(); batch && !this.stopping && !this.failure; batch = this.buffer.take()) {
          await this.options.onBatch(batch);
          this.failures = 0;
          this.progressed_at = performance.now();
          this.commit();
        }
      } catch (error) {
        this.fail(error as Error);
      } finally {
        this.in_hand = undefined;
      }
    });
  }

  /** For tools that show a group's lag; never read by us: the caller's checkpoint says where to go on. */
  private commit(): void {
    const now = performance.now();
    const { member } = this;
    if (!member || now - this.committed_at < COMMIT_EVERY_MS) return;
    this.committed_at = now;
    const { topic } = this.options;
    const offsets = [...this.buffer.positions].map(([partition, at]) => ({ topic, partition, offset: String(at) }));
    member
      .commitOffsets(offsets)
      .catch((error: Error) => this.deps.log?.debug({ err: error, ...this.names }, 'offsets for lag tools not stored'));
  }

  /** Judges by progress, not by heartbeats: a consumer that only looks alive is started again. */
  private watch(): void {
    const { stall_ms } = this.deps.times;
    const now = performance.now();
    // A batch in hand is the caller's to judge.
    if (this.in_hand || this.buffer.full) this.fetched_at = this.progressed_at = now;
    if (now - this.fetched_at > stall_ms) return this.stalled('no fetch');
    if (this.looking || now - this.progressed_at < stall_ms || this.expected.size === 0) return;
    this.looking = true;
    const { generation } = this;
    this.deps.client
      .bounds(this.options.topic)
      .then((bounds) => {
        const behind = [...this.expected].some(([partition, at]) => (bounds.get(partition)?.next ?? 0) > at);
        if (generation !== this.generation || this.progressed_at > now) return;
        if (behind) this.stalled('no record although there are some');
        else this.progressed_at = performance.now();
      })
      .catch((error: Error) => this.deps.log?.debug({ err: error, ...this.names }, 'could not look whether it stalls'))
      .finally(() => (this.looking = false));
  }

  private stalled(what: string): void {
    const error = new Error(`${what} for ${this.deps.times.stall_ms} ms`);
    error.name = 'Stalled';
    this.endLife(error);
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.buffer.clear();
    this.endLife(error);
  }

  private async pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wakePause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
