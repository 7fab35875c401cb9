import { randomUUID } from 'node:crypto';
import { retry } from '../../../lib/async/retry';
import { pause, Signal, withTimeout } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import { isPassing } from '../../../kernel/failures';
import type { ProcessSession } from '../../postgres/process-session';
import type { Wakeups } from '../../wakeups/port';
import type { RecentRecords } from '../recent-records';
import type { ConsumeOptions, Consumer, RecordBatch } from '../port';
import type { Fetched, PostgresLog } from './log';
import type { TopicInfo } from './publish-groups';

const HEARTBEAT_MS = 3000;
const POLL_MS = 1000;
const LEAVE_MS = 2000;
const MAX_BYTES = 4 * 1024 * 1024;
/**
 * Shortest time between two fetches while records stream in, so that more records share the costs of a batch (round
 * trips, checkpoint, commit). Applies after a batch of {@link STREAM} records or more; fewer are fetched without delay.
 */
const PACE_MS = 15;
const STREAM = 8;
/** Pace after a batch of this number of records: the batch's own cost is then a twentieth of a record's total cost. */
const BUSY = { records: 64, pace_ms: 30 } as const;

export interface ConsumerDeps {
  log: PostgresLog;
  session: ProcessSession;
  handover: RecentRecords;
  wakeups: Wakeups;
  logger: Logger | undefined;
}

/**
 * Member of a group. JOINING → READING → LEFT: holds leases on partitions, renews them by heartbeats that do not wait
 * for a batch in hand, and reads only leased partitions. A partition that another member should have is released
 * between two batches. A member that was silent too long may read at the same time as its successor for a moment:
 * checkpoints move by compare-and-set, so the loser's batch has no effect.
 */
export class PostgresConsumer implements Consumer {
  readonly done: Promise<void>;
  private readonly member = randomUUID();
  /** Partitions being read, and their next offsets. */
  private readonly positions = new Map<number, number>();
  private leases = new Map<number, boolean>();
  private balancing: Promise<unknown> = Promise.resolve();
  private failure: Error | undefined;
  private readonly stop_asked = new AbortController();
  private readonly news = new Signal();
  private fetched_at = -PACE_MS;
  /** Records of the last batch. */
  private last_count = 0;
  private asked_at = -POLL_MS;
  /** `more` of the last fetch from the log. */
  private log_holds_more = false;
  /** Another process may have written: the handover may lack records. */
  private others_wrote = true;
  /** The last page was not the end of the log. */
  private catching_up = false;
  private ahead: { after: string; fetched: Promise<Fetched> } | undefined;

  constructor(
    private readonly options: ConsumeOptions,
    private readonly deps: ConsumerDeps,
  ) {
    this.done = this.run();
    // The rejection reaches callers that await `done`; without such a caller it must not end the process.
    this.done.catch((error: Error) =>
      deps.logger?.error({ err: error, topic: options.topic, group: options.group }, 'consumer stopped'),
    );
  }

  async stop(): Promise<void> {
    this.stop_asked.abort();
    await this.done.catch(() => undefined);
  }

  private get stopping(): boolean {
    return this.stop_asked.signal.aborted;
  }

  private async run(): Promise<void> {
    const topic = await this.persist(() => this.deps.log.topic(this.options.topic));
    await this.deps.session.ready();
    if (!topic || this.stopping) return;
    const group_name = `broker-group:${topic.topic}:${this.options.group}`;
    // One waiting heartbeat is enough: while the database is unavailable others would queue, and all be sent later.
    let waits = false;
    const heartbeat = () => {
      if (waits) return;
      waits = true;
      const begun = () => (waits = false);
      this.balance(topic, [], begun).catch((error: Error) => this.fail(error));
    };
    const timer = setInterval(heartbeat, HEARTBEAT_MS);
    const ends = [
      this.deps.handover.join(this.positions),
      this.deps.wakeups.on(`topic:${topic.topic}`, (elsewhere) => {
        this.others_wrote ||= elsewhere;
        this.news.raise();
      }),
      this.deps.wakeups.on(group_name, heartbeat),
    ];
    try {
      await this.persist(() => this.balance(topic, []));
      this.news.raise();
      while (!this.stopping) await this.step(topic);
      if (this.failure) throw this.failure;
    } finally {
      clearInterval(timer);
      for (const end of ends) end();
      await this.leave(topic, group_name);
    }
  }

  /** Leaves the group, best effort: the other members detect a member that could not. */
  private async leave(topic: TopicInfo, group_name: string): Promise<void> {
    const left = this.balancing
      .then(() => this.deps.log.leave(topic, this.options.group, this.member))
      .then(() => this.deps.wakeups.notify(group_name))
      .catch((error: Error) => this.deps.logger?.debug({ err: error }, 'a consumer could not say that it leaves'));
    await withTimeout(left, LEAVE_MS, () => new Error('no answer')).catch(() => undefined);
  }

  private async step(topic: TopicInfo): Promise<void> {
    // Waits for a wake-up: a fetch without news would only delay the next record.
    if (!this.catching_up) await this.news.wait(POLL_MS, this.stop_asked.signal);
    await this.followLeases(topic);
    await this.pace();
    if (this.stopping) return;
    this.news.clear();
    this.fetched_at = performance.now();
    const fetched = this.positions.size > 0 ? await this.persist(() => this.fetch(topic)) : undefined;
    if (this.stopping) return;
    this.last_count = fetched?.records.length ?? 0;
    this.catching_up = fetched?.more ?? false;
    if (!fetched || fetched.records.length === 0) return;
    const batch: RecordBatch = { topic: topic.topic, records: fetched.records, progress: new Map() };
    for (const [partition, to] of fetched.next) {
      batch.progress.set(partition, { from: this.positions.get(partition)!, to });
      this.positions.set(partition, to);
    }
    if (fetched.more) this.fetchAhead(topic);
    await this.options.onBatch(batch);
  }

  private async pace(): Promise<void> {
    if (this.last_count < STREAM || this.catching_up || this.stopping) return;
    const pace_ms = this.last_count < BUSY.records ? PACE_MS : BUSY.pace_ms;
    const wait_ms = this.fetched_at + pace_ms - performance.now();
    if (wait_ms >= 1) await pause(wait_ms, this.stop_asked.signal);
  }

  /**
   * Aligns the partitions being read with the leases: releases those that another member should have, starts new ones,
   * drops lost ones.
   */
  private async followLeases(topic: TopicInfo): Promise<void> {
    const unwanted = [...this.leases].filter(([, wanted]) => !wanted).map(([partition]) => partition);
    if (unwanted.length > 0) {
      for (const partition of unwanted) this.positions.delete(partition);
      await this.persist(() => this.balance(topic, unwanted));
    }
    for (const partition of this.positions.keys()) if (!this.leases.has(partition)) this.positions.delete(partition);
    const fresh = [...this.leases.keys()].filter(
      (partition) => !this.positions.has(partition) && this.leases.get(partition),
    );
    if (fresh.length === 0 || this.stopping) return;
    const starts = await this.options.start(fresh);
    const bounds = await this.persist(() => this.deps.log.bounds(topic));
    for (const partition of fresh) {
      const from = starts.get(partition) ?? bounds?.get(partition)?.earliest;
      if (from !== undefined) this.positions.set(partition, from);
    }
  }

  private fetch(topic: TopicInfo): Promise<Fetched> {
    const { ahead } = this;
    this.ahead = undefined;
    // A page read ahead for other positions is dropped: the assignment changed meanwhile.
    if (ahead && ahead.after === this.place()) return ahead.fetched;
    const request = { from: this.positions, max_records: this.options.max_records ?? 1000, max_bytes: MAX_BYTES };
    const now = performance.now();
    // Records that did not fit the last page may be of another process: only the log has all of them.
    const ask = this.others_wrote || this.log_holds_more || now - this.asked_at >= POLL_MS;
    const handed = ask ? undefined : this.deps.handover.take(request);
    if (handed) return Promise.resolve(handed);
    this.asked_at = now;
    this.others_wrote = false;
    return this.deps.log.fetch(topic, request).then((fetched) => {
      this.log_holds_more = fetched.more;
      return fetched;
    });
  }

  /** Reads the next batch while the caller works on this one. */
  private fetchAhead(topic: TopicInfo): void {
    const fetched = this.fetch(topic).then((next) => {
      this.options.onAhead?.(next.records);
      return next;
    });
    // A failure is handled when the batch is due, or never.
    fetched.catch(() => undefined);
    this.ahead = { after: this.place(), fetched };
  }

  private place(): string {
    return JSON.stringify([...this.positions]);
  }

  /** Balances the group, one call at a time and in order; notifies other members when leases may move to them. */
  private balance(topic: TopicInfo, release: number[], begun?: () => void): Promise<void> {
    const balance = async () => {
      begun?.();
      const { group } = this.options;
      const { leases, joined } = await this.deps.log.balance(
        topic,
        group,
        this.member,
        this.deps.session.lock,
        release,
      );
      const changed =
        leases.size !== this.leases.size ||
        [...leases].some(([partition, wanted]) => this.leases.get(partition) !== wanted);
      this.leases = leases;
      if (joined || release.length > 0) this.deps.wakeups.notify(`broker-group:${topic.topic}:${group}`);
      if (changed) this.news.raise();
    };
    const result = this.balancing.then(balance);
    this.balancing = result.catch(() => undefined);
    return result;
  }

  /** Retries `work` until it succeeds or the consumer stops (then undefined). @throws an error that does not pass */
  private async persist<T>(work: () => Promise<T>): Promise<T | undefined> {
    const { topic, group } = this.options;
    const { signal } = this.stop_asked;
    try {
      return await retry(work, {
        first_ms: 50,
        most_ms: 2000,
        signal,
        passing: isPassing,
        onFailure: (err) => this.deps.logger?.warn({ err, topic, group }, 'the log does not answer, trying again'),
      });
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  private fail(error: Error): void {
    if (isPassing(error)) return;
    this.failure ??= error;
    this.stop_asked.abort();
  }
}
