import type { Consumer as KafkaGroupMember } from 'kafkajs';
import { Backoff } from '../../../kernel/retry';
import { pause, turn } from '../../../kernel/signal';
import type { Logger } from '../../log/port';
import type { Counter } from '../../metrics/port';
import { KafkaBuffer } from './buffer';
import { answered, type KafkaClient, RETRY } from './client';
import { StallWatch } from './stall-watch';
import { KafkaTail } from './tail';
import { type ConsumeOptions, type Consumer, OffsetOutOfRange } from '../port';

export interface KafkaConsumerTimes {
  /** A member that is silent so long is taken out of its group. Brokers allow 6 s to 30 min by default. */
  session_ms: number;
  /** How long a rebalance waits for members that are busy. */
  rebalance_ms: number;
  /** Behind, or without a fetch, and without a batch for so long: started again. */
  stall_ms: number;
  /** Longest pause between two starts. */
  backoff_ms: number;
  /** How long the leader of a partition may wait for a first record. */
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
/** kafkajs, which fetches nothing here, looks so often whether a heartbeat is due; also how long a stop may take. */
const MEMBER_TURN_MS = 500;
/** Longest wait for room in the buffer until it is looked at again. */
const ROOM_LOOK_MS = 1_000;
const COMMIT_EVERY_MS = 5_000;
const LET_GO_MS = 3_000;
/** Rebalances within half a minute that end a member: it waits a while instead of turning with the storm. */
const STORM = 15;
const STORM_MS = 30_000;

/**
 * One member of a group, over as many kafkajs consumers as it takes: one that crashes, stalls or turns in a storm of
 * rebalances is thrown away and the next one begins at the caller's checkpoint. kafkajs is the group's member only,
 * {@link KafkaTail} fetches. What was fetched waits in a bounded buffer: heartbeats, fetches and rebalances go on while
 * `onBatch` works. A batch that is in hand when its partition goes to another member is fenced by the caller's
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
  /** Per assigned partition the offset after what was fetched; empty until the caller has said where to read on. */
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
      // A batch in hand is the caller's to judge.
      busy: () => this.in_hand !== undefined || this.buffer.full,
      fetching: () => this.tail?.started ?? false,
      behind: () => this.behind(),
      onStall: (error) => this.endLife(error),
      onBlind: (error) => deps.log?.debug({ err: error, ...this.names }, 'could not look whether it stalls'),
    });
    this.done = this.run();
    // Whoever watches `done` sees the rejection; a consumer that nobody watches must not end the process.
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

  /** One kafkajs consumer, from its first connection to its end; why it ended. */
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
      // Its own restarts would keep what broke it: a crash ends this consumer, and we make another one.
      retry: { ...RETRY, retries: 4, restartOnFailure: () => Promise.resolve(false) },
    });
    this.member = member;
    const ended = new Promise<Error | undefined>((resolve) => (this.endLife = resolve));
    const rebalances: number[] = [];
    member.on(member.events.CRASH, ({ payload }) => this.endLife(payload.error));
    member.on(member.events.GROUP_JOIN, ({ payload }) => this.assigned(member, payload.memberAssignment[topic] ?? []));
    // Its fetches sleep, since all is paused; that they come at all shows that heartbeats are looked after.
    member.on(member.events.FETCH, () => this.watch.turned());
    member.on(member.events.REBALANCING, () => {
      // The next owner may read the checkpoint any moment: what is fetched now would only be fenced.
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

  /** What was fetched belongs to an assignment that is over. */
  private forget(): number {
    this.buffer.clear();
    this.fetched_to.clear();
    return (this.generation += 1);
  }

  /** Nothing is fetched before the caller has said from where, and never by kafkajs: its partitions stay paused. */
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

  /** Works off the buffer, one batch at a time. */
  private pump(): void {
    this.in_hand ??= turn().then(async () => {
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

  /** Whether the topic has records beyond what was fetched; null where nothing is, or the assignment has changed. */
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
