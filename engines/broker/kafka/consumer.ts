import type { Consumer as KafkaGroupMember } from 'kafkajs';
import { Backoff } from '../../../lib/async/retry';
import { pause, yieldToEventLoop } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import type { Counter } from '../../metrics/port';
import { KafkaBuffer } from './fetch/buffer';
import { answered, type KafkaClient, RETRY } from './client';
import { StallWatch } from './stall-watch';
import { KafkaTail } from './fetch/tail';
import { type ConsumeOptions, type Consumer, OffsetOutOfRange } from '../port';

export interface KafkaConsumerTimes {
  /** Silence after which a member is removed from its group. Brokers allow 6 s to 30 min by default. */
  session_ms: number;
  /** Longest wait of a rebalance for busy members. */
  rebalance_ms: number;
  /** A consumer without a batch for this time that is behind, or does not fetch, is restarted. */
  stall_ms: number;
  /** Longest pause between two starts. */
  backoff_ms: number;
  /** Longest wait of a partition's leader for a first record. */
  fetch_wait_ms: number;
}

export const CONSUMER_TIMES: KafkaConsumerTimes = {
  session_ms: 8_000,
  rebalance_ms: 10_000,
  stall_ms: 20_000,
  backoff_ms: 5_000,
  fetch_wait_ms: 500,
};

export interface KafkaConsumerDeps {
  client: KafkaClient;
  log: Logger | undefined;
  times: KafkaConsumerTimes;
  restarts: Counter | undefined;
}

const LIMITS = { max_bytes: 8 * 1024 * 1024, partition_bytes: 1024 * 1024 };
/** Interval at which kafkajs, which fetches nothing here, checks for a due heartbeat; a stop may take as long. */
const MEMBER_TURN_MS = 500;
/** Longest wait for room in the buffer before the buffer is checked again. */
const ROOM_LOOK_MS = 1_000;
const COMMIT_EVERY_MS = 5_000;
const LET_GO_MS = 3_000;
/** Rebalances within half a minute after which a member ends; the next one starts after a pause. */
const STORM = 15;
const STORM_MS = 30_000;

/**
 * Member of a group, over any number of kafkajs consumers: a consumer that crashes, stalls or meets a storm of
 * rebalances is discarded, and the next one begins at the caller's checkpoint. kafkajs only holds the membership;
 * {@link KafkaTail} fetches. Fetched records wait in a bounded buffer, so that heartbeats, fetches and rebalances
 * continue while `onBatch` works. A batch in hand whose partition moves to another member is fenced by the caller's
 * checkpoint, not by the group.
 */
export class KafkaConsumer implements Consumer {
  readonly done: Promise<void>;
  private readonly buffer: KafkaBuffer;
  private readonly stop_asked = new AbortController();
  private failure: Error | undefined;
  private member: KafkaGroupMember | undefined;
  private generation = 0;
  private tail: KafkaTail | undefined;
  /** Offset after the fetched records per assigned partition; empty until the caller has returned the start offsets. */
  private readonly fetched_to = new Map<number, number>();
  private in_hand: Promise<void> | undefined;
  private endLife: (why: Error | undefined) => void = () => undefined;
  private readonly backoff: Backoff;
  private readonly watch: StallWatch;
  private committed_at = 0;

  constructor(
    private readonly options: ConsumeOptions,
    private readonly deps: KafkaConsumerDeps,
  ) {
    this.backoff = new Backoff({ first_ms: 200, most_ms: deps.times.backoff_ms });
    this.buffer = new KafkaBuffer(options.topic, options.max_records ?? 1000);
    this.watch = new StallWatch({
      stall_ms: deps.times.stall_ms,
      // The caller bounds the time of a batch in hand.
      busy: () => this.in_hand !== undefined || this.buffer.full,
      fetching: () => this.tail?.started ?? false,
      behind: () => this.behind(),
      onStall: (error) => this.endLife(error),
      onBlind: (error) => deps.log?.debug({ err: error, ...this.names }, 'could not look whether it stalls'),
    });
    this.done = this.run();
    // The rejection reaches callers that await `done`; without such a caller it must not end the process.
    this.done.catch((error: Error) => deps.log?.error({ err: error, ...this.names }, 'consumer stopped'));
  }

  async stop(): Promise<void> {
    this.stop_asked.abort();
    this.buffer.clear();
    this.endLife(undefined);
    await this.done.catch(() => undefined);
  }

  private get stopping(): boolean {
    return this.stop_asked.signal.aborted;
  }

  private get names() {
    return { topic: this.options.topic, group: this.options.group };
  }

  private async run(): Promise<void> {
    const { log, restarts } = this.deps;
    while (!this.stopping && !this.failure) {
      const why = await this.live();
      if (this.stopping || this.failure) break;
      const wait_ms = this.backoff.next();
      restarts?.inc(1, { ...this.names, reason: why?.name ?? 'unknown' });
      log?.warn(
        { err: why, failures: this.backoff.failures, ...this.names },
        'a kafka consumer ended, starting another one',
      );
      await pause(wait_ms, this.stop_asked.signal);
    }
    await this.in_hand;
    if (this.failure) throw this.failure;
  }

  /** Runs a kafkajs consumer from its first connection to its end; resolves with the reason of the end. */
  private async live(): Promise<Error | undefined> {
    const { client, times, log } = this.deps;
    const { topic, group } = this.options;
    const member = client.kafka.consumer({
      groupId: group,
      sessionTimeout: times.session_ms,
      rebalanceTimeout: times.rebalance_ms,
      heartbeatInterval: Math.floor(times.session_ms / 4),
      maxWaitTimeInMs: MEMBER_TURN_MS,
      allowAutoTopicCreation: false,
      // A restart by kafkajs would keep the broken state: a crash ends this consumer, and a new one replaces it.
      retry: { ...RETRY, retries: 4, restartOnFailure: () => Promise.resolve(false) },
    });
    this.member = member;
    const ended = new Promise<Error | undefined>((resolve) => (this.endLife = resolve));
    const rebalances: number[] = [];
    member.on(member.events.CRASH, ({ payload }) => this.endLife(payload.error));
    member.on(member.events.GROUP_JOIN, ({ payload }) => this.assigned(member, payload.memberAssignment[topic] ?? []));
    // The fetch loop of kafkajs is idle because all partitions are paused, but it sends the heartbeats.
    member.on(member.events.FETCH, () => this.watch.turned());
    member.on(member.events.REBALANCING, () => {
      // The next owner may read the checkpoint at any moment: the effect of further fetches would be fenced.
      this.renewTail();
      rebalances.push(performance.now());
      if (rebalances.length > STORM && performance.now() - rebalances.shift()! < STORM_MS)
        this.endLife(new Error(`${STORM} rebalances within ${STORM_MS} ms`));
    });
    this.watch.start();
    const start = async () => {
      await member.connect();
      await member.subscribe({ topics: [topic], fromBeginning: true });
      await member.run({ autoCommit: false, eachBatch: () => Promise.resolve() });
    };
    this.tail = this.newTail();
    start().catch((error: Error) => this.endLife(error));
    if (this.stopping) this.endLife(undefined);
    try {
      return await ended;
    } finally {
      this.watch.stop();
      this.member = undefined;
      this.tail.stop();
      this.tail = undefined;
      this.forget();
      await answered(member.disconnect(), LET_GO_MS, 'leaving the group').catch((error: Error) =>
        log?.debug({ err: error, ...this.names }, 'a kafka consumer did not end cleanly'),
      );
    }
  }

  /** Drops the fetched records of an assignment that has ended. */
  private forget(): number {
    this.buffer.clear();
    this.fetched_to.clear();
    return (this.generation += 1);
  }

  /** Begins to fetch once the caller has returned the start offsets. In kafkajs the partitions stay paused. */
  private assigned(member: KafkaGroupMember, partitions: number[]): void {
    const generation = this.forget();
    this.watch.turned();
    this.watch.progressed();
    this.renewTail();
    if (partitions.length === 0 || member !== this.member) return;
    member.pause([{ topic: this.options.topic, partitions }]);
    this.position(partitions, generation).catch((error: Error) => {
      if (generation === this.generation) this.endLife(error);
    });
  }

  private async position(partitions: number[], generation: number): Promise<void> {
    // A batch of the last assignment may still move the checkpoint.
    await this.in_hand;
    if (generation !== this.generation) return;
    const starts = await this.options.start(partitions).catch((error: Error) => this.fail(error));
    if (!starts) return;
    const unsaid = partitions.filter((partition) => !starts.has(partition));
    const bounds = unsaid.length > 0 ? await this.deps.client.bounds(this.options.topic) : undefined;
    if (generation !== this.generation) return;
    for (const partition of partitions) {
      const from = starts.get(partition) ?? bounds!.get(partition)!.earliest;
      this.fetched_to.set(partition, from);
      this.buffer.open(partition, from);
    }
    this.watch.answered();
    this.tail!.start(this.fetched_to);
  }

  private renewTail(): void {
    if (!this.tail?.started) return;
    this.tail.stop();
    this.tail = this.newTail();
  }

  private newTail(): KafkaTail {
    const tail: KafkaTail = new KafkaTail({
      client: this.deps.client,
      topic: this.options.topic,
      limits: { ...LIMITS, wait_ms: this.deps.times.fetch_wait_ms },
      log: this.deps.log,
      onAnswer: () => this.watch.answered(),
      onRecords: (partition, records, next) => {
        this.fetched_to.set(partition, next);
        if (records.length === 0) return;
        this.buffer.add(partition, records, next);
        this.pump();
      },
      room: async () => {
        while (this.buffer.full && this.tail === tail && !this.stopping && !this.failure)
          await this.buffer.drained(ROOM_LOOK_MS);
      },
      onFailure: (error) => {
        if (this.tail !== tail) return;
        if (error instanceof OffsetOutOfRange) this.fail(error);
        else this.endLife(error);
      },
    });
    return tail;
  }

  /** Passes the buffer to the caller, one batch at a time. */
  private pump(): void {
    this.in_hand ??= yieldToEventLoop().then(async () => {
      try {
        for (let batch = this.buffer.take(); batch && !this.stopping && !this.failure; batch = this.buffer.take()) {
          await this.options.onBatch(batch);
          this.backoff.reset();
          this.watch.progressed();
          this.commit();
        }
      } catch (error) {
        this.fail(error as Error);
      } finally {
        this.in_hand = undefined;
      }
    });
  }

  /** Stores the group's offsets for lag tools only; a start reads the caller's checkpoint. */
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

  /** Whether the topic has records that were not fetched; null without an assignment, or after it has changed. */
  private async behind(): Promise<boolean | null> {
    const { generation } = this;
    if (this.fetched_to.size === 0) return null;
    const bounds = await this.deps.client.bounds(this.options.topic);
    if (generation !== this.generation) return null;
    return [...this.fetched_to].some(([partition, at]) => (bounds.get(partition)?.next ?? 0) > at);
  }

  private fail(error: Error): void {
    this.failure ??= error;
    this.buffer.clear();
    this.endLife(error);
  }
}
