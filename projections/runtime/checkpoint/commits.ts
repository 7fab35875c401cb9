import type { EventStore } from '../../../engines/event-store/port';
import type { Logger } from '../../../engines/log/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { Tracing } from '../../../engines/tracing/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import { allSettledOrThrow } from '../../../lib/async/all-settled';
import type { JobRequest } from '../../../kernel/job';
import type { ApplyMode, Projection } from '../../../kernel/projection';
import { commitBatch, type Batch } from '../drive/batch';
import { beginBatchSpan } from '../drive/batch-trace';
import { CheckpointLost, isEventProjection, type Move } from './checkpoints';
import type { ConsumerRun } from '../drive/consumer-run';
import type { RunnerMetrics } from '../status/metrics';
import { OUTBOX_WAKEUP } from '../outbox/outbox';
import type { Progress } from './progress';
import { CHECKPOINT_WAKEUP } from '../status/read-models';
import { beginningFirst, compareOffsets, InitialBuildBoundary } from '../drive/initial-build';

/** Stores the jobs that a projection requests. */
export interface JobRequests {
  enqueueNamed(tx: Queryable, requests: readonly JobRequest[]): Promise<void>;
  has(name: string): boolean;
  /** To be called after the commit. */
  wake(): void;
}

export interface CommitsDeps {
  db: Database;
  events: Pick<EventStore, 'compare'>;
  wakeups: Wakeups;
  log: Logger;
  metrics: RunnerMetrics;
  /** Default: off. */
  tracing?: Tracing;
  progress: Progress;
  /** Required when a projection requests jobs. */
  jobs?: JobRequests;
  /** See {@link ApplyMode}. */
  whenCounted?: ApplyMode['whenCounted'];
  /** Milliseconds behind and without progress after which the projection is restarted. */
  stall_ms: number;
}

/** Position up to which a partition was processed. */
type Passed = Pick<Move, 'partition' | 'to'>;

/** Commits the batches of one projection: silently until the projection is built, then with announcements. */
export class Commits {
  readonly silence: InitialBuildBoundary;
  /** Records or events applied since this process began. */
  applied = 0;

  constructor(
    private readonly projection: Projection,
    private readonly deps: CommitsDeps,
    /** Called after each batch with the append time of its last record; null for an empty batch. */
    private readonly onAdvanced: (at: string | null) => void,
  ) {
    const events = isEventProjection(projection);
    this.silence = new InitialBuildBoundary(events ? beginningFirst(deps.events.compare) : compareOffsets, events);
  }

  /**
   * Applies a batch of the log of `engine`, its lanes concurrently; `appended_at` is of its last record. The batch has
   * progressed when all lanes have; a failed lane is retried with growing pauses whatever the others do.
   * @throws CheckpointLost when another worker, or another run of this consumer, has taken over; database errors
   * unchanged
   */
  async commit(life: ConsumerRun, engine: string, appended_at: string | null, lanes: readonly Batch[]): Promise<void> {
    await allSettledOrThrow(lanes.map((lane) => this.commitLane(life, engine, lane)));
    this.advanced(life, [], appended_at);
  }

  private async commitLane(life: ConsumerRun, engine: string, lane: Batch): Promise<void> {
    for (const part of this.silence.split(lane)) {
      const moves = part.moves.map((move) => ({ ...move, erasures: lane.erasures?.get(move.partition) }));
      await this.commitPart(life, engine, { ...part, moves });
    }
  }

  private async commitPart(life: ConsumerRun, engine: string, batch: Batch): Promise<void> {
    const { db, metrics, wakeups, log, tracing, jobs, whenCounted, stall_ms } = this.deps;
    const p = this.projection;
    if (life.left) throw new CheckpointLost(p.name, batch.moves);
    const label = { projection: p.name };
    const started = performance.now();
    const span = beginBatchSpan(p.name, batch, tracing);
    let asked = false;
    const enqueue = async (tx: Queryable, requests: readonly JobRequest[]) => {
      asked = true;
      await jobs!.enqueueNamed(tx, requests);
    };
    const { messages, parked } = await commitBatch(db, p, engine, batch, stall_ms, {
      enqueue,
      ...(whenCounted && { whenCounted }),
    }).catch((error: unknown) => {
      span?.end(error);
      throw error;
    });
    if (asked) jobs!.wake();
    span?.set({ 'lumio.messages': messages.length, 'lumio.parked': parked.length });
    span?.end();
    metrics.apply_seconds.observe((performance.now() - started) / 1000, label);
    metrics.batch_records.observe(batch.items.length, label);
    metrics.records.inc(batch.items.length, label);
    this.applied += batch.items.length;
    if (messages.length > 0) wakeups.notify(OUTBOX_WAKEUP);
    if (isEventProjection(p)) wakeups.notify(CHECKPOINT_WAKEUP);
    if (p.wakes !== undefined && batch.items.length > 0) wakeups.notify(p.wakes);
    if (parked.length > 0) {
      metrics.parked.inc(parked.length, label);
      // Only the dead letters hold the reason, because a data error quotes the data.
      log.error({ ...label, parked: parked.length, reason: parked[0]!.reason }, 'records parked as dead letters');
    }
    this.silence.passed(batch);
    this.passed(life, batch.moves);
  }

  /** Reports progress; `at` is the append time of the last record, null without records. */
  advanced(life: ConsumerRun, moves: readonly Passed[], at: string | null): void {
    if (life.left) return;
    this.onAdvanced(at);
    this.passed(life, moves);
  }

  /** Readers in this process need not wait for the stored checkpoint. */
  private passed(life: ConsumerRun, moves: readonly Passed[]): void {
    if (life.left) return;
    for (const { partition, to } of moves) this.deps.progress.advance(this.projection.name, partition, to);
  }
}
