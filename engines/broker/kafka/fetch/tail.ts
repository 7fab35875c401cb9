import { createErrorFromCode } from 'kafkajs/src/protocol/error';
import { Backoff } from '../../../../lib/async/retry';
import { pause } from '../../../../lib/async/signal';
import type { Logger } from '../../../log/port';
import { isPassingAtKafka, type KafkaClient } from '../client';
import { type FetchLimits, KafkaFetcher, NOBODY } from './fetcher';
import { decodeRecords, type FetchedPartition } from './records';
import { type BrokerRecord, OffsetOutOfRange } from '../../port';

export interface KafkaTailOptions {
  client: KafkaClient;
  topic: string;
  limits: FetchLimits;
  log: Logger | undefined;
  /**
   * Fetched records of one partition, in order and without a gap; `next` is the offset of its next fetch. `records` is
   * empty where the log had only markers.
   */
  onRecords(partition: number, records: BrokerRecord[], next: number): void;
  /** A leader answered, with records or without. */
  onAnswer(): void;
  /** Resolves when more may be fetched. */
  room(): Promise<void>;
  /** Called when the tail cannot continue: partitions, topic or rights are gone, or an offset is not in the log. */
  onFailure(error: Error): void;
}

const OFFSET_OUT_OF_RANGE = 1;
/** Error codes of a partition whose leader changes; the leaders are fetched again. */
const MOVED = new Set([3, 5, 6, 9, 56, 72, 74, 75, 78]);
const FIRST_PAUSE_MS = 40;
const LONGEST_PAUSE_MS = 1_000;
/** Number of the consecutive failure that is logged as a warning; a restarted node is back by then. */
const LOUD = 6;
/** A leader that has just taken over may report an end below the true one for a moment. */
const BEYOND_END_TRIES = 6;
const BEYOND_END_MS = 500;

/**
 * Follows partitions from given offsets, one loop for each node that leads some of them. Each loop waits out passing
 * failures (an unavailable node, a leader that moved), so that a silent node delays only its own partitions.
 */
export class KafkaTail {
  private readonly fetcher: KafkaFetcher;
  private readonly connected: Promise<unknown>;
  private readonly positions = new Map<number, number>();
  private readonly beyond_end = new Map<number, number>();
  private readonly loops = new Map<string, Promise<void>>();
  private readonly stopping = new AbortController();
  private turn = 0;

  constructor(private readonly options: KafkaTailOptions) {
    this.fetcher = new KafkaFetcher(options.client);
    // Concurrent with the joining of the group; a failure shows in the first loop.
    this.connected = this.fetcher.leaders(options.topic, []).catch(() => undefined);
  }

  private get stopped(): boolean {
    return this.stopping.signal.aborted;
  }

  /** True when {@link start} was called. */
  get started(): boolean {
    return this.positions.size > 0;
  }

  start(positions: ReadonlyMap<number, number>): void {
    for (const [partition, offset] of positions) this.positions.set(partition, offset);
    void this.connected.then(() => this.follow(NOBODY));
  }

  stop(): void {
    this.stopping.abort();
    const close = () =>
      this.fetcher
        .close()
        .catch((error: Error) => this.options.log?.debug({ err: error }, 'kafka: fetching ended badly'));
    // Closes at once, so that no loop waits for an answer; and again, when nothing can connect any more.
    void close();
    void Promise.all([this.connected, ...this.loops.values()]).then(close);
  }

  /** Starts the loop of a node unless it runs. */
  private follow(node: string): void {
    if (this.stopped || this.loops.has(node)) return;
    const loop = this.loop(node)
      .catch((error: Error) => {
        if (!this.stopped) this.options.onFailure(error);
      })
      .finally(() => this.loops.delete(node));
    this.loops.set(node, loop);
  }

  private async loop(node: string): Promise<void> {
    const { topic, limits, log, room, onAnswer } = this.options;
    const backoff = new Backoff({ first_ms: FIRST_PAUSE_MS, most_ms: LONGEST_PAUSE_MS });
    let wait_ms = 0;
    while (!this.stopped) {
      try {
        await room();
        if (wait_ms > 0) await this.fetcher.refresh();
        const leaders = await this.fetcher.leaders(topic, [...this.positions.keys()]);
        for (const other of leaders.keys()) this.follow(other);
        const mine = leaders.get(node);
        if (!mine || this.stopped) return;
        const places = this.inTurn(mine).map((partition) => [partition, this.positions.get(partition)!] as const);
        const fetched = await this.fetcher.fetch(node, topic, places, limits);
        if (this.stopped) return;
        onAnswer();
        let moved = false;
        for (const partition of fetched) moved = !(await this.handOver(partition)) || moved;
        if (!moved) backoff.reset();
        wait_ms = moved ? backoff.next() : 0;
      } catch (error) {
        if (this.stopped) return;
        if (!isPassingAtKafka(error)) throw error;
        wait_ms = backoff.next();
        const { failures } = backoff;
        const level = failures === LOUD ? 'warn' : 'debug';
        log?.[level]({ err: error as Error, topic, node, failures }, 'kafka: a fetch failed, it is made again');
      }
      if (wait_ms > 0) await pause(wait_ms, this.stopping.signal);
    }
  }

  /** Passes fetched records on. False when the partition's leader must be fetched again. */
  private async handOver(fetched: FetchedPartition): Promise<boolean> {
    const { topic, onRecords } = this.options;
    const { partition, error } = fetched;
    const from = this.positions.get(partition)!;
    if (error === OFFSET_OUT_OF_RANGE) return this.outOfRange(partition, from);
    if (MOVED.has(error)) return false;
    if (error !== 0) throw createErrorFromCode(error);
    this.beyond_end.delete(partition);
    const { records, next } = await decodeRecords(topic, from, fetched);
    if (this.stopped || next === from) return true;
    this.positions.set(partition, next);
    onRecords(partition, records, next);
    return true;
  }

  private async outOfRange(partition: number, from: number): Promise<boolean> {
    const { client, topic } = this.options;
    const { earliest, next } = (await client.bounds(topic)).get(partition)!;
    const tries = (this.beyond_end.get(partition) ?? 0) + 1;
    if (from < earliest || (from > next && tries > BEYOND_END_TRIES))
      throw new OffsetOutOfRange(topic, partition, from, { earliest, next });
    this.beyond_end.set(partition, tries);
    if (from > next) await pause(BEYOND_END_MS, this.stopping.signal);
    return false;
  }

  /** Leaders fill an answer in the order of the request: each partition is first in its turn. */
  private inTurn(partitions: readonly number[]): number[] {
    this.turn = (this.turn + 1) % partitions.length;
    return [...partitions.slice(this.turn), ...partitions.slice(0, this.turn)];
  }
}
