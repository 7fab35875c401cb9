import { Backoff } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import type { Campaign, Shares } from '../../engines/leases/port';
import type { Database } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';
import { buildBeside, NoSpace, type BuildBesideDeps } from './build-beside';
import {
  CheckpointLost,
  EngineMismatch,
  isEventProjection,
  Outdated,
  readCheckpoints,
  RebuildNeeded,
  Superseded,
} from './checkpoints';
import { Consumer, type ConsumerDeps } from './consumer';
import { describe, ProjectionFault } from './failures';
import { NewerEventMet, untilNewerBuildIsGone } from './newer';
import type { RunnerState } from './runner-states';

export type RunnerDeps = ConsumerDeps & {
  /** Divides the projections of domain events among the processes; topics are divided by their partitions. */
  shares: Shares;
  onFatal?: (error: Error) => void;
  /** See {@link BuildBesideDeps}. */
  freeBytes?: BuildBesideDeps['freeBytes'];
  trim?: BuildBesideDeps['trim'];
  /** Database of builds beside the live tables, whose statements may take hours. Default: `db`. */
  build_db?: Database;
  /** Records per transaction of a build beside the live tables. Default: that of {@link RebuildOptions}. */
  build_records?: number;
  /** Longest pause between restarts. */
  backoff_ms: number;
};

const FIRST_BACKOFF_MS = 50;
const REBUILD_LOOK_MS = 1000;
/** Pause after another process was met at the checkpoint. */
const OTHER_DRIVER_MS = 500;
/**
 * Drives one projection for ever: opens its checkpoints, consumes, and after any failure starts anew from the stored
 * checkpoint with growing pauses. Nothing is ever skipped. One door: {@link Runner.stop}.
 */
export class Runner {
  state: RunnerState = 'starting';
  private readonly ended: Promise<void>;
  private offer: Campaign | undefined;
  /** While it is left to a newer build. */
  private away: Promise<void> | undefined;
  private readonly stopping = new AbortController();
  /** Aborted when this process should no longer drive it. */
  private ends: AbortSignal = this.stopping.signal;
  private readonly backoff: Backoff;
  private readonly consumer: Consumer;
  /** Why it is stopped, until it gets on. */
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

  /** Each version is a piece of its own: the older one is driven while the newer is built beside it. */
  private offerIt(): void {
    const { name, version } = this.projection;
    this.offer = this.deps.shares.offer(`projection:${name}@${version}`, (held) =>
      this.loop(AbortSignal.any([this.stopping.signal, held])),
    );
  }

  private get moving(): RunnerState {
    return this.consumer.silent ? 'building' : 'running';
  }

  /** Takes nothing new, lets the batch in hand end; resolves when it has. */
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

  /** Until it is stopped, or another process should drive it. */
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
      // A process that was thought dead, or one of a build that divides nothing.
      this.state = 'standby';
      this.deps.progress.forget(name);
      log.info({ projection: name }, 'another process moved the checkpoint of this projection; it is read again');
      await pause(OTHER_DRIVER_MS * (0.5 + Math.random()), this.ends);
      return;
    }
    if (error instanceof NewerEventMet) {
      this.state = 'needs_newer_build';
      this.deps.progress.forget(name);
      log.error({ projection: name, at: error.at }, error.message);
      // Not waited for here: it begins by ending this loop.
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

  /** The live rows go on serving meanwhile; whoever drives them still does. */
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

  /** Gives the projection up; offers to drive it again when a newer build has read on from there, and is gone. */
  private async leaveToNewerBuild(at: string): Promise<void> {
    await this.offer?.stop();
    await untilNewerBuildIsGone({
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

  /** Looks at the lag; starts the consumer again when it is behind and stood still for `stall_ms`. */
  async observe(): Promise<void> {
    const { db, stall_ms } = this.deps;
    const p = this.projection;
    const stored = await readCheckpoints(db, p);
    const live = Math.max(0, ...[...stored.values()].map(({ version }) => version));
    // A process that does not drive it reports that it is superseded, too.
    if (live > p.version && this.state === 'standby') this.supersede(new Superseded(p.name, live, p.version));
    const still_ms = await this.consumer.observe(stored);
    if ((this.state !== 'running' && this.state !== 'building') || still_ms === null) return;
    if (still_ms >= stall_ms) this.consumer.giveUp(still_ms);
  }
}
