import { withTimeout } from '../../../lib/async/signal';
import type { Projection } from '../../../kernel/projection';
import { isEventProjection, isRecordProjection, type Checkpoint } from '../checkpoint/checkpoints';
import { Commits, type CommitsDeps } from '../checkpoint/commits';
import { driveEvents, type EventDriverDeps } from './drive-events';
import { driveRecords, type RecordDriverDeps } from './drive-records';
import { describe } from './failures';
import { Lag } from '../status/lag';
import { type Subscription, ConsumerRun } from './consumer-run';
import { behindOf } from '../status/states';

export type ConsumerDeps = CommitsDeps & RecordDriverDeps & EventDriverDeps;

/** The consumer made no progress although it is behind. */
class Stalled extends Error {
  constructor(projection: string, ms: number) {
    super(`projection ${projection}: no progress for ${ms} ms although it is behind`);
    this.name = 'Stalled';
  }
}

/** Notifications of a consumer while it drives. */
export interface ConsumerEvents {
  /** A run has begun at the stored checkpoint. */
  onBegun(): void;
  /** The consumer has made progress. */
  onAdvanced(): void;
}

/** Milliseconds that a consumer may take to stop before it is abandoned (its writes are fenced). */
const LET_GO_MS = 5000;

/** Consumer of one projection: one run after another, each from the stored checkpoint. */
export class Consumer {
  private readonly commits: Commits;
  private readonly lag = new Lag();
  /** Newest run. */
  private life: ConsumerRun | undefined;

  constructor(
    private readonly projection: Projection,
    private readonly deps: ConsumerDeps,
    private readonly events: ConsumerEvents,
  ) {
    this.commits = new Commits(projection, deps, (at) => {
      this.lag.progressed(at);
      events.onAdvanced();
    });
  }

  /** Records or events applied since this process began. */
  get applied(): number {
    return this.commits.applied;
  }

  /** See {@link Lag}. */
  get observed(): Lag['observed'] {
    return this.lag.observed;
  }

  /** True before the end that the source had at the first start. */
  get silent(): boolean {
    return this.commits.silence.active;
  }

  /** Drives one run: resolves when `ends` is aborted, throws when the run fails. */
  async drive(ends: AbortSignal): Promise<void> {
    const { name } = this.projection;
    if (this.life) this.life.left = true;
    const life = (this.life = new ConsumerRun(ends));
    this.lag.begin();
    const drive = await this.begin(life);
    this.events.onBegun();
    try {
      await life.lasts(drive.done);
    } finally {
      // The consumer's own failure is thrown already; a stop that fails or hangs is abandoned, fenced by the
      // checkpoint.
      drive.done.catch(() => undefined);
      if (!life.over) life.left = true;
      const release = drive.stop().catch((error: unknown) => {
        this.deps.log.warn({ projection: name, err: describe(error) }, 'consumer did not stop cleanly');
      });
      await withTimeout(release, LET_GO_MS, () => new Error('left behind')).catch(() => undefined);
      life.interrupt(new Error(`projection ${name}: the batch in hand was left behind`));
    }
    if (!life.over) throw new Error(`projection ${name}: its consumer ended by itself`);
  }

  private begin(life: ConsumerRun): Promise<Subscription> {
    const { deps, projection: p, commits } = this;
    return isRecordProjection(p) ? driveRecords(deps, p, commits, life) : driveEvents(deps, p, commits, life);
  }

  /** Measures the lag from the stored checkpoints; null when not behind, else the milliseconds without progress. */
  async observe(stored: ReadonlyMap<number, Checkpoint>): Promise<number | null> {
    const p = this.projection;
    this.commits.silence.forget(stored.values());
    const at = isEventProjection(p) ? this.deps.progress.at(p.name, 0) : undefined;
    // Progress in memory counts: the stored checkpoint follows within a second.
    const behind = await behindOf(this.deps, p, at === undefined ? stored : new Map([[0, { position: at }]]));
    return this.lag.observe(behind);
  }

  /** Ends the current run, after `still_ms` without progress. */
  giveUp(still_ms: number): void {
    this.life?.interrupt(new Stalled(this.projection.name, Math.round(still_ms)));
  }
}
