import { Backoff } from '../../../lib/async/retry';
import { pause } from '../../../lib/async/signal';
import type { Campaign, Shares } from '../../../engines/leases/port';
import type { Database } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { buildBeside, NoSpace, type BuildBesideDeps } from '../rebuild/build-beside';
import {
  CheckpointLost,
  EngineMismatch,
  isEventProjection,
  Outdated,
  readCheckpoints,
  RebuildNeeded,
  Superseded,
} from '../checkpoint/checkpoints';
import { Consumer, type ConsumerDeps } from './consumer';
import { describe, ProjectionFault } from './failures';
import { EventFromNewerVersion, waitForNewerVersionToStop } from './newer-version';
import type { RunnerState } from '../status/runner-states';

export type RunnerDeps = ConsumerDeps & {
  /** Divides the projections of domain events among the processes; topics are divided by their partitions. */
  shares: Shares;
  onFatal?: (error: Error) => void;
  /** See {@link BuildBesideDeps}. */
  freeBytes?: BuildBesideDeps['freeBytes'];
  trim?: BuildBesideDeps['trim'];
  /** Database for builds of new tables, whose statements may take hours. Default: `db`. */
  build_db?: Database;
  /** Records per transaction of such a build. Default: that of {@link RebuildOptions}. */
  build_records?: number;
  /** Longest pause between restarts. */
  backoff_ms: number;
};

const FIRST_BACKOFF_MS = 50;
const REBUILD_LOOK_MS = 1000;
/** Pause after another process moved the checkpoint. */
const OTHER_DRIVER_MS = 500;
/**
 * Drives one projection until {@link Runner.stop}: opens its checkpoints, consumes, and after any failure restarts from
 * the stored checkpoint with growing pauses. Nothing is ever skipped.
 */
export class Runner {
  state: RunnerState = 'starting';
  private readonly ended: Promise<void>;
  private offer: Campaign | undefined;
  /** Set while the projection is left to a newer release. */
  private away: Promise<void> | undefined;
  private readonly stopping = new AbortController();
  /** Aborted when this process should no longer drive the projection. */
  private ends: AbortSignal = this.stopping.signal;
  private readonly backoff: Backoff;
  private readonly consumer: Consumer;
  /** Reason for the state `stopped`, until the next progress. */
  private fault: Error | null = null;

  constructor(
    readonly projection: Projection,
    private readonly deps: RunnerDeps,
  ) {
    this.consumer = new Consumer(projection, deps, {
      onBegun: () => {
        if (this.fault === null) this.state = this.moving;
      },
      onAdvanced: () => this.advanced(),
    });
    this.backoff = new Backoff({ first_ms: FIRST_BACKOFF_MS, most_ms: deps.backoff_ms });
    if (isEventProjection(projection)) {
      this.state = 'standby';
      this.offerIt();
      this.ended = Promise.resolve();
    } else {
      this.ended = this.loop(this.stopping.signal);
    }
  }

  /** Records or events applied since this process began. */
  get applied(): number {
    return this.consumer.applied;
  }

  /** Behind by this many records (events: 0 or 1) and seconds, as last observed. */
  get lag(): Consumer['observed'] {
    return this.consumer.observed;
  }

  /** Offers each version as a share of its own: the older one is driven while the newer is built next to it. */
  private offerIt(): void {
    const { name, version } = this.projection;
    this.offer = this.deps.shares.offer(`projection:${name}@${version}`, (held) =>
      this.loop(AbortSignal.any([this.stopping.signal, held])),
    );
  }

  private get moving(): RunnerState {
    return this.consumer.silent ? 'building' : 'running';
  }

  /** Takes no new batch and resolves when the current batch has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.offer?.stop();
    await this.away;
    await this.ended;
    this.state = 'ended';
    this.deps.log.debug({ projection: this.projection.name }, 'projection stopped');
  }

  private get over(): boolean {
    return this.ends.aborted;
  }

  /** Runs until the runner is stopped, or another process should drive the projection. */
  private async loop(ends: AbortSignal): Promise<void> {
    this.ends = ends;
    while (!this.over) {
      try {
        await this.consumer.drive(ends);
      } catch (error) {
        await this.recover(error instanceof Error ? error : new Error(String(error)));
      }
    }
    if (!this.away && this.state !== 'superseded') this.state = 'standby';
    this.deps.progress.forget(this.projection.name);
  }

  private async recover(error: Error): Promise<void> {
    const { log, metrics, onFatal } = this.deps;
    const { name } = this.projection;
    metrics.restarts.inc(1, { projection: name, reason: error.name });
    if (error instanceof EngineMismatch) {
      this.state = 'refused';
      log.error({ projection: name, err: error.message }, 'projection refuses to run');
      onFatal?.(error);
      await pause(Infinity, this.ends);
      return;
    }
    if (error instanceof RebuildNeeded) {
      if (this.state !== 'needs_rebuild') log.error({ projection: name }, error.message);
      this.state = 'needs_rebuild';
      await pause(REBUILD_LOOK_MS, this.ends);
      return;
    }
    if (error instanceof Outdated) return this.buildBeside(error);
    if (error instanceof Superseded) {
      this.supersede(error);
      await pause(REBUILD_LOOK_MS, this.ends);
      return;
    }
    if (error instanceof CheckpointLost && isEventProjection(this.projection)) {
      // Another process: one that was considered dead, or one of a release that divides no projections.
      this.state = 'standby';
      this.deps.progress.forget(name);
      log.info({ projection: name }, 'another process moved the checkpoint of this projection; it is read again');
      await pause(OTHER_DRIVER_MS * (0.5 + Math.random()), this.ends);
      return;
    }
    if (error instanceof EventFromNewerVersion) {
      this.state = 'needs_newer_build';
      this.deps.progress.forget(name);
      log.error({ projection: name, at: error.at }, error.message);
      // Not awaited here, because it begins by ending this loop.
      this.away ??= this.leaveToNewerBuild(error.at);
      await pause(Infinity, this.ends);
      return;
    }
    const wait_ms = this.backoff.next();
    const { failures } = this.backoff;
    if (error instanceof ProjectionFault || error instanceof NoSpace) {
      this.state = 'stopped';
      this.fault = error;
      const why = describe(error.cause ?? error);
      log.error({ projection: name, err: why, failures }, 'projection is stopped');
    } else if (this.fault === null) {
      this.state = 'backoff';
      log.warn({ projection: name, err: describe(error), failures }, 'projection starts again');
    }
    await pause(wait_ms, this.ends);
  }

  private supersede(why: Superseded): void {
    const { log, progress } = this.deps;
    const { name } = this.projection;
    if (this.state !== 'superseded') log.warn({ projection: name }, why.message);
    this.state = 'superseded';
    progress.forget(name);
  }

  /** The live rows serve meanwhile, and their process still drives them. */
  private async buildBeside(outdated: Outdated): Promise<void> {
    const { log, progress } = this.deps;
    const { name, version } = this.projection;
    const facts = { projection: name, live: outdated.live, version };
    progress.forget(name);
    if (this.fault === null) this.state = 'building';
    try {
      const { build_records: batch_records, build_db, ...deps } = this.deps;
      const beside = { ...deps, db: build_db ?? deps.db, batch_records };
      const built = await buildBeside(beside, this.projection, this.ends);
      if (!built) return await pause(REBUILD_LOOK_MS, this.ends);
      this.fault = null;
      this.backoff.reset();
      log.info(facts, 'projection was built beside its live tables and swapped in');
    } catch (error) {
      if (this.over) return;
      await this.recover(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Releases the projection; offers to drive it again when a newer release has moved the checkpoint and is gone. */
  private async leaveToNewerBuild(at: string): Promise<void> {
    await this.offer?.stop();
    await waitForNewerVersionToStop({
      ...this.deps,
      place: this.projection,
      at,
      stop: this.stopping.signal,
      onMoved: () => (this.state = 'standby'),
    });
    this.away = undefined;
    if (!this.stopping.signal.aborted) this.offerIt();
  }

  private advanced(): void {
    this.backoff.reset();
    this.fault = null;
    this.state = this.moving;
  }

  /** Measures the lag; restarts the consumer when it is behind and made no progress for `stall_ms`. */
  async observe(): Promise<void> {
    const { db, stall_ms } = this.deps;
    const p = this.projection;
    const stored = await readCheckpoints(db, p);
    const live = Math.max(0, ...[...stored.values()].map(({ version }) => version));
    // A process that does not drive the projection also reports that it is superseded.
    if (live > p.version && this.state === 'standby') this.supersede(new Superseded(p.name, live, p.version));
    const still_ms = await this.consumer.observe(stored);
    if ((this.state !== 'running' && this.state !== 'building') || still_ms === null) return;
    if (still_ms >= stall_ms) this.consumer.giveUp(still_ms);
  }
}
