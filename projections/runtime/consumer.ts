import { within } from '../../kernel/signal';
import type { Projection } from '../../kernel/projection';
import { isEventProjection, isRecordProjection, type Checkpoint } from './checkpoints';
import { Commits, type CommitsDeps } from './commits';
import { driveEvents, type EventDriverDeps } from './drive-events';
import { driveRecords, type RecordDriverDeps } from './drive-records';
import { describe } from './failures';
import { Lag } from './lag';
import { type Drive, Life } from './life';
import { behindOf } from './states';

export type ConsumerDeps = CommitsDeps & RecordDriverDeps & EventDriverDeps;

/** The consumer did nothing although there was work. */
class Stalled extends Error {
  constructor(projection: string, ms: number) {
    super(`projection ${projection}: no progress for ${ms} ms although it is behind`);
    this.name = 'Stalled';
  }
}

/** What is told of a consumer while it drives. */
export interface ConsumerEvents {
  /** A life has begun at the stored checkpoint. */
  onBegun(): void;
  /** It got on. */
  onAdvanced(): void;
}

/** How long a consumer may take to let go before it is left behind (its writes are fenced). */
const LET_GO_MS = 5000;

/** What consumes for one projection: one life after another, each from the stored checkpoint on. */
export class Consumer {
  private readonly commits: Commits;
  private readonly lag = new Lag();
  /** The newest one. */
  private life: Life | undefined;

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

  /** It is not yet where its source ended when it was first driven. */
  get silent(): boolean {
    return this.commits.silence.holds;
  }

  /** One life: until `ends` is aborted (resolves) or it fails (throws). */
  async drive(ends: AbortSignal): Promise<void> {
    const { name } = this.projection;
    if (this.life) this.life.left = true;
    const life = (this.life = new Life(ends));
    this.lag.begin();
    const drive = await this.begin(life);
    this.events.onBegun();
    try {
      await life.lasts(drive.done);
    } finally {
      // The consumer's own failure is thrown already; a stop that fails or hangs is left behind, fenced by the
      // checkpoint.
      drive.done.catch(() => undefined);
      if (!life.over) life.left = true;
      const letGo = drive.stop().catch((error: unknown) => {
        this.deps.log.warn({ projection: name, err: describe(error) }, 'consumer did not stop cleanly');
      });
      await within(letGo, LET_GO_MS, () => new Error('left behind')).catch(() => undefined);
      life.interrupt(new Error(`projection ${name}: the batch in hand was left behind`));
    }
    if (!life.over) throw new Error(`projection ${name}: its consumer ended by itself`);
  }

  private begin(life: Life): Promise<Drive> {
    const { deps, projection: p, commits } = this;
    return isRecordProjection(p) ? driveRecords(deps, p, commits, life) : driveEvents(deps, p, commits, life);
  }

  /** Looks at the lag from the stored checkpoints; null when it is not behind, else the milliseconds it stood still. */
  async observe(stored: ReadonlyMap<number, Checkpoint>): Promise<number | null> {
    const p = this.projection;
    this.commits.silence.forget(stored.values());
    const at = isEventProjection(p) ? this.deps.progress.at(p.name, 0) : undefined;
    // What this process passed in memory counts: the stored checkpoint follows within a second.
    const behind = await behindOf(this.deps, p, at === undefined ? stored : new Map([[0, { position: at }]]));
    return this.lag.observe(behind);
  }

  /** Ends the life in hand, which stood still for so many milliseconds. */
  giveUp(still_ms: number): void {
    this.life?.interrupt(new Stalled(this.projection.name, Math.round(still_ms)));
  }
}
