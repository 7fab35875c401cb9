import type { EventStore } from '../../engines/event-store/port';
import type { Logger } from '../../engines/log/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { Tracing } from '../../engines/tracing/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { allEnded } from '../../kernel/all-ended';
import type { JobRequest } from '../../kernel/job';
import type { Projection } from '../../kernel/projection';
import { commitBatch, type Batch } from './batch';
import { beginBatchSpan } from './batch-trace';
import { CheckpointLost, isEventProjection, type Move } from './checkpoints';
import type { Life } from './life';
import type { RunnerMetrics } from './metrics';
import { OUTBOX_WAKEUP } from './outbox';
import type { Progress } from './progress';
import { CHECKPOINT_WAKEUP } from './read-models';
import { beginningFirst, compareOffsets, Silence } from './silence';

/** Where jobs are stored that a projection asks for. */
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
  /** Without it no projection may ask for jobs. */
  jobs?: JobRequests;
  /** Behind and without progress for so long it is started again. */
  stall_ms: number;
}

/** Up to where a partition was passed. */
type Passed = Pick<Move, 'partition' | 'to'>;

/** The batches of one projection, committed and told of: silently up to where it is built, then announced. */
export class Commits {
  readonly silence: Silence;
  /** Records or events applied since this process began. */
  applied = 0;

  constructor(
    private readonly projection: Projection,
    private readonly deps: CommitsDeps,
    /** Told after each batch when its last record was appended; null when it held none. */
    private readonly onAdvanced: (at: string | null) => void,
  ) {
    const events = isEventProjection(projection);
    this.silence = new Silence(events ? beginningFirst(deps.events.compare) : compareOffsets, events);
  }

  /**
   * Applies a batch that lies in the log of `engine`, its lanes side by side; `appended_at` is of its last record. It
   * has got on when all of them have: one that fails is tried again with growing pauses whatever the others do.
   * @throws CheckpointLost when another worker, or another life of this one, goes on; database errors as they come
   */
  async commit(life: Life, engine: string, appended_at: string | null, lanes: readonly Batch[]): Promise<void> {
    await allEnded(lanes.map((lane) => this.commitLane(life, engine, lane)));
    this.advanced(life, [], appended_at);
  }

  private async commitLane(life: Life, engine: string, lane: Batch): Promise<void> {
    for (const part of this.silence.split(lane)) await this.commitPart(life, engine, part);
  }

  private async commitPart(life: Life, engine: string, batch: Batch): Promise<void> {
    const { db, metrics, wakeups, log, tracing, jobs, stall_ms } = this.deps;
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
    const { messages, parked } = await commitBatch(db, p, engine, batch, stall_ms, enqueue).catch((error: unknown) => {
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
      // Why is in the dead letters alone: a data error quotes the data.
      log.error({ ...label, parked: parked.length, reason: parked[0]!.reason }, 'records parked as dead letters');
    }
    this.silence.passed(batch);
    this.passed(life, batch.moves);
  }

  /** Got on up to there; `at` is when the last record of that was appended, null when there was none. */
  advanced(life: Life, moves: readonly Passed[], at: string | null): void {
    if (life.left) return;
    this.onAdvanced(at);
    this.passed(life, moves);
  }

  /** Readers in this process need not wait for the stored checkpoint. */
  private passed(life: Life, moves: readonly Passed[]): void {
    if (life.left) return;
    for (const { partition, to } of moves) this.deps.progress.advance(this.projection.name, partition, to);
  }
}
