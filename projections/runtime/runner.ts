import { Backoff } from '../../kernel/retry';
import { within } from '../../kernel/signal';
import type { Broker } from '../../engines/broker/port';
import type { EventStore } from '../../engines/event-store/port';
import type { Campaign, Shares } from '../../engines/leases/port';
import type { Logger } from '../../engines/log/port';
import type { Database } from '../../engines/postgres/port';
import type { RecordLog } from '../../engines/records/port';
import type { Tracing } from '../../engines/tracing/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { commitBatch, type Batch } from './batch';
import { beginBatchSpan } from './batch-trace';
import { behindOf } from './states';
import {
  BEGINNING,
  type Checkpoint,
  CheckpointLost,
  EngineMismatch,
  isEventProjection,
  openCheckpoints,
  Outdated,
  readCheckpoints,
  RebuildNeeded,
  Superseded,
} from './checkpoints';
import type { Item } from './dead-letters';
import { buildBeside, NoSpace, type BuildBesideDeps } from './build-beside';
import { archivedBatches } from './catch-up';
import { askedTypes, NewerEventMet, takenFrom, untilNewerBuildIsGone } from './newer';
import { openProjection } from './opening';
import { compareOffsets, comparePositions, Silence } from './silence';
import { DecodeAhead, decodeStored } from './decode';
import { describe, ProjectionFault } from './failures';
import { OUTBOX_WAKEUP } from './outbox';
import type { Progress } from './progress';
import type { EventProjection, Projection } from '../../kernel/projection';
import { CHECKPOINT_WAKEUP } from './read-models';
import { HistoryGone, type ReadArchived } from './rebuild-source';
import type { RunnerMetrics } from './metrics';

export interface RunnerDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'decode'>;
  events: EventStore;
  wakeups: Wakeups;
  /** Divides the projections of domain events among the processes; topics are divided by their partitions. */
  shares: Shares;
  log: Logger;
  metrics: RunnerMetrics;
  /** Default: off. */
  tracing?: Tracing;
  progress: Progress;
  /**
   * Reads what the topics no longer hold. Absent: a checkpoint before the beginning of its topic waits for a rebuild.
   */
  readArchived?: ReadArchived;
  onFatal?: (error: Error) => void;
  /** See {@link BuildBesideDeps}. */
  freeBytes?: BuildBesideDeps['freeBytes'];
  batch_records: number;
  /** Records per transaction of a build beside the live tables. Default: that of {@link RebuildOptions}. */
  build_records?: number;
  batch_events: number;
  /** Longest pause between restarts. */
  backoff_ms: number;
  /** Behind and without progress for so long it is started again. */
  stall_ms: number;
}

/**
 * What a projection is doing in this process. `building`: for the first time, silently, or a new version beside the
 * old; `running`; `standby`: another process drives it; `superseded`: a later version is live; `backoff`: something it
 * needs is away; `stopped`: by a mistake of the program, or for want of space, tried again with growing pauses;
 * `needs_newer_build`: at an event that this build cannot read; `needs_rebuild`: its source has lost what lies behind
 * its checkpoint; `refused`: its checkpoint is of another engine; `ended`: with its process. Decision 0014.
 */
export const RUNNER_STATES = [
  'starting',
  'building',
  'superseded',
  'running',
  'backoff',
  'standby',
  'needs_rebuild',
  'refused',
  'stopped',
  'needs_newer_build',
  'ended',
] as const;
export type RunnerState = (typeof RUNNER_STATES)[number];
/** States that a person should look at; the others pass by themselves. */
export const WAITING_STATES: readonly RunnerState[] = [
  'needs_rebuild',
  'refused',
  'stopped',
  'needs_newer_build',
  'superseded',
];

/** The consumer did nothing although there was work. */
class Stalled extends Error {
  constructor(projection: string, ms: number) {
    super(`projection ${projection}: no progress for ${ms} ms although it is behind`);
    this.name = 'Stalled';
  }
}

/** What a runner drives at one time: a broker consumer or an event subscription. */
interface Drive {
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

const FIRST_BACKOFF_MS = 50;
const REBUILD_LOOK_MS = 1000;
/** Pause after another process was met at the checkpoint. */
const OTHER_DRIVER_MS = 500;
/** A checkpoint over other event types alone is written at most this often. */
const IDLE_MOVE_MS = 1000;
/** How long a consumer may take to let go before it is left behind (its writes are fenced). */
const LET_GO_MS = 5000;

/**
 * Drives one projection for ever: opens its checkpoints, consumes, and after any failure starts anew from the stored
 * checkpoint with growing pauses. Nothing is ever skipped. One door: {@link Runner.stop}.
 */
export class Runner {
  state: RunnerState = 'starting';
  /** Behind by this many records (events: 0 or 1, positions cannot be counted) and seconds, as last observed. */
  lag = { behind: 0, seconds: 0 };
  private readonly ended: Promise<void>;
  private offer: Campaign | undefined;
  /** While it is left to a newer build. */
  private away: Promise<void> | undefined;
  /** Aborted when another process should drive it, or does. */
  private held: AbortSignal | undefined;
  private stopping = false;
  private wakeStop: () => void = () => undefined;
  private readonly stopped: Promise<void>;
  /** Resolves when this process should no longer drive it. */
  private ends: Promise<void>;
  private interrupt: (error: Error) => void = () => undefined;
  private generation = 0;
  private readonly backoff: Backoff;
  private progressed_at = performance.now();
  private behind_since: number | null = null;
  private applied_at: string | null = null;
  /** Records or events applied since this process began. */
  applied = 0;
  private readonly silence: Silence;
  /** Why it is stopped, until it gets on. */
  private fault: Error | null = null;

  constructor(
    readonly projection: Projection,
    private readonly deps: RunnerDeps,
  ) {
    const events = isEventProjection(projection);
    this.silence = new Silence(events ? comparePositions(deps.events.compare) : compareOffsets, events);
    this.backoff = new Backoff({ first_ms: FIRST_BACKOFF_MS, most_ms: deps.backoff_ms });
    this.stopped = new Promise((resolve) => (this.wakeStop = resolve));
    this.ends = this.stopped;
    if (events) {
      this.state = 'standby';
      this.offerIt();
    }
    this.ended = this.offer ? this.stopped : this.loop();
  }

  /** Each version is a piece of its own: the older one is driven while the newer is built beside it. */
  private offerIt(): void {
    const { name, version } = this.projection;
    this.offer = this.deps.shares.offer(`projection:${name}@${version}`, (held) => this.loop(held));
  }

  private get moving(): RunnerState {
    return this.silence.holds ? 'building' : 'running';
  }

  /** Takes nothing new, lets the batch in hand end; resolves when it has. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wakeStop();
    await this.offer?.stop();
    await this.away;
    await this.ended;
    this.state = 'ended';
    this.deps.log.debug({ projection: this.projection.name }, 'projection stopped');
  }

  private get over(): boolean {
    return this.stopping || this.held?.aborted === true;
  }

  /** Until it is stopped, or another process should drive it. */
  private async loop(held?: AbortSignal): Promise<void> {
    this.held = held;
    this.ends = held ? Promise.race([this.stopped, aborted(held)]) : this.stopped;
    while (!this.over) {
      try {
        await this.drive();
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
      await this.ends;
      return;
    }
    if (error instanceof RebuildNeeded) {
      if (this.state !== 'needs_rebuild') log.error({ projection: name }, error.message);
      this.state = 'needs_rebuild';
      await this.pause(REBUILD_LOOK_MS);
      return;
    }
    if (error instanceof Outdated) return this.buildBeside(error);
    if (error instanceof Superseded) {
      this.supersede(error);
      await this.pause(REBUILD_LOOK_MS);
      return;
    }
    if (error instanceof CheckpointLost && isEventProjection(this.projection)) {
      // A process that was thought dead, or one of a build that divides nothing.
      this.state = 'standby';
      this.deps.progress.forget(name);
      log.info({ projection: name }, 'another process moved the checkpoint of this projection; it is read again');
      await this.pause(OTHER_DRIVER_MS * (0.5 + Math.random()));
      return;
    }
    if (error instanceof NewerEventMet) {
      this.state = 'needs_newer_build';
      this.deps.progress.forget(name);
      log.error({ projection: name, at: error.at }, error.message);
      // Not waited for here: it begins by ending this loop.
      this.away ??= this.leaveToNewerBuild(error.at);
      await this.ends;
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
    await this.pause(wait_ms);
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
    const ending = new AbortController();
    void this.ends.then(() => ending.abort(new Error('this process should no longer build it; another goes on')));
    try {
      const { build_records: batch_records, ...deps } = this.deps;
      const built = await buildBeside({ ...deps, batch_records }, this.projection, ending.signal);
      if (!built) return await this.pause(REBUILD_LOOK_MS);
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
    this.held = undefined;
    this.ends = this.stopped;
    const stop = new AbortController();
    void this.stopped.then(() => stop.abort());
    await untilNewerBuildIsGone({
      ...this.deps,
      place: this.projection,
      at,
      stop: stop.signal,
      onMoved: () => (this.state = 'standby'),
    });
    this.away = undefined;
    if (!this.stopping) this.offerIt();
  }

  private async pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([new Promise((resolve) => (timer = setTimeout(resolve, ms))), this.ends]);
    clearTimeout(timer);
  }

  /** One life of the consumer: until it is stopped (resolves) or fails (throws). */
  private async drive(): Promise<void> {
    const generation = (this.generation += 1);
    this.progressed_at = performance.now();
    this.behind_since = null;
    const interrupted = new Promise<never>((_, reject) => (this.interrupt = reject));
    interrupted.catch(() => undefined); // without a race it is nobody's failure
    const drive = isEventProjection(this.projection)
      ? await this.subscribe(generation, interrupted)
      : await this.consume(generation, interrupted);
    if (this.fault === null) this.state = this.moving;
    try {
      await Promise.race([drive.done, interrupted, this.ends]);
    } finally {
      // The consumer's own failure is thrown already; a stop that fails or hangs is left behind, fenced by the
      // checkpoint.
      drive.done.catch(() => undefined);
      if (!this.over) this.generation += 1;
      const letGo = drive.stop().catch((error: unknown) => {
        this.deps.log.warn({ projection: this.projection.name, err: describe(error) }, 'consumer did not stop cleanly');
      });
      await within(letGo, LET_GO_MS, () => new Error('left behind')).catch(() => undefined);
      this.interrupt(new Error(`projection ${this.projection.name}: the batch in hand was left behind`));
    }
    if (!this.over) throw new Error(`projection ${this.projection.name}: its consumer ended by itself`);
  }

  private async open(): Promise<Map<number, Checkpoint>> {
    try {
      const opened = await openProjection(this.deps, this.projection);
      this.silence.learn(opened.values());
      return opened;
    } catch (error) {
      throw error instanceof HistoryGone ? new RebuildNeeded(this.projection.name, error.message) : error;
    }
  }

  private async consume(generation: number, interrupted: Promise<never>): Promise<Drive> {
    const { broker, db, records, batch_records } = this.deps;
    const p = this.projection;
    const topic = p.from.kind === 'topic' ? p.from.topic : '';
    // Versions are checked before the group is joined: a projection that needs a rebuild must hold no partition.
    const opened = await this.open();
    for (const [partition, { earliest }] of await broker.bounds(topic)) {
      const at = Number(opened.get(partition)!.position);
      if (at < earliest) await this.catchUp(generation, interrupted, topic, partition, at, earliest);
    }
    const ahead = new DecodeAhead(records);
    return broker.consume({
      topic,
      group: `lumio-projection-${p.name}`,
      max_records: batch_records,
      start: async (partitions) => {
        const given = await openCheckpoints(db, p, broker.id, partitions, '0');
        this.silence.learn((await readCheckpoints(db, p)).values());
        return new Map([...given].map(([partition, { position }]) => [partition, Number(position)]));
      },
      onAhead: (stored) => ahead.begin(stored),
      onBatch: async (batch) => {
        const decoded = await ahead.decoded(batch.records);
        const work = this.commit(generation, broker.id, batch.records.at(-1)?.appended_at ?? null, {
          ...decoded,
          moves: [...batch.progress].map(([partition, { from, to }]) => ({
            partition,
            from: String(from),
            to: String(to),
          })),
        });
        // A batch that hangs must not keep the consumer, and with it the partitions, for ever.
        await Promise.race([work, interrupted]);
      },
    });
  }

  /** Applies what left the topic before this checkpoint had it: a restored database may be older than the archive. */
  private async catchUp(
    generation: number,
    interrupted: Promise<never>,
    topic: string,
    partition: number,
    from: number,
    to: number,
  ): Promise<void> {
    const { broker, records, batch_records, log, readArchived } = this.deps;
    const { name } = this.projection;
    log.warn({ projection: name, topic, partition, from, to }, 'reading on from the archive: the topic begins later');
    try {
      for await (const batch of archivedBatches(readArchived!, topic, partition, from, to, batch_records)) {
        if (this.over) return;
        const decoded = await decodeStored(records, batch.records);
        const work = this.commit(generation, broker.id, batch.records.at(-1)?.appended_at ?? null, {
          ...decoded,
          moves: [batch.move],
        });
        await Promise.race([work, interrupted]);
      }
    } catch (error) {
      throw error instanceof HistoryGone ? new RebuildNeeded(name, error.message) : error;
    }
  }

  private async subscribe(generation: number, interrupted: Promise<never>): Promise<Drive> {
    const { events, batch_events } = this.deps;
    const p = this.projection as EventProjection;
    let stored = (await this.open()).get(0)!.position;
    let moved_at = 0;
    let idle: NodeJS.Timeout | undefined;
    let seen = stored;
    // Batches and idle moves take turns: both compare against `stored`.
    let turn: Promise<void> = Promise.resolve();
    const inTurn = (work: () => Promise<void>) => (turn = turn.then(work));

    const move = async (to: string, items: Item[], at: string | null) => {
      const work = this.commit(generation, events.id, at, {
        items,
        undecodable: [],
        moves: [{ partition: 0, from: stored, to }],
      });
      await Promise.race([work, interrupted]);
      stored = to;
      moved_at = performance.now();
    };
    const moveIdle = () => {
      idle = undefined;
      void inTurn(async () => {
        if (seen !== stored && !this.over && generation === this.generation) await move(seen, [], null);
      }).catch((error: unknown) => this.interrupt(error instanceof Error ? error : new Error(String(error))));
    };

    const subscription = events.subscribe(
      { after: stored === BEGINNING ? null : stored, types: askedTypes(p), batch_size: batch_events },
      (batch) =>
        inTurn(async () => {
          const { events: mine, newer } = takenFrom(p, batch.events);
          // Up to the last event before it: that one is where a newer build begins.
          seen = newer ? (mine.at(-1)?.position ?? stored) : batch.position;
          const items = mine.map((event): Item => ({ kind: 'event', event }));
          const ends_silence = this.silence.endsAt(0, seen);
          if (items.length > 0 || ends_silence || performance.now() - moved_at > IDLE_MOVE_MS) {
            if (seen !== stored) await move(seen, items, mine.at(-1)?.recorded_at ?? null);
            if (!newer) return;
          }
          if (newer) throw new NewerEventMet(`projection ${p.name}`, stored, newer);
          // Everything up to here was seen: readers in this process need not wait for the stored checkpoint.
          this.advanced(generation, [{ partition: 0, to: seen }], null);
          idle ??= setTimeout(moveIdle, IDLE_MOVE_MS);
        }),
    );
    return {
      done: subscription.done,
      stop: async () => {
        clearTimeout(idle);
        await subscription.stop();
        clearTimeout(idle);
      },
    };
  }

  private async commit(generation: number, engine: string, appended_at: string | null, batch: Batch): Promise<void> {
    for (const part of this.silence.split(batch)) await this.commitPart(generation, engine, appended_at, part);
  }

  private async commitPart(
    generation: number,
    engine: string,
    appended_at: string | null,
    batch: Batch,
  ): Promise<void> {
    const { db, metrics, wakeups, log } = this.deps;
    const p = this.projection;
    if (generation !== this.generation) throw new CheckpointLost(p.name, batch.moves);
    const label = { projection: p.name };
    const started = performance.now();
    const span = beginBatchSpan(p.name, batch, this.deps.tracing);
    const { messages, parked } = await commitBatch(db, p, engine, batch, this.deps.stall_ms).catch((error: unknown) => {
      span?.end(error);
      throw error;
    });
    span?.set({ 'lumio.messages': messages.length, 'lumio.parked': parked.length });
    span?.end();
    metrics.apply_seconds.observe((performance.now() - started) / 1000, label);
    metrics.batch_records.observe(batch.items.length, label);
    metrics.records.inc(batch.items.length, label);
    this.applied += batch.items.length;
    if (messages.length > 0) wakeups.notify(OUTBOX_WAKEUP);
    if (isEventProjection(p)) wakeups.notify(CHECKPOINT_WAKEUP);
    if (parked.length > 0) {
      metrics.parked.inc(parked.length, label);
      // Why is in the dead letters alone: a data error quotes the data.
      log.error({ ...label, parked: parked.length, reason: parked[0]!.reason }, 'records parked as dead letters');
    }
    this.silence.passed(batch);
    this.advanced(generation, batch.moves, appended_at);
  }

  private advanced(generation: number, moves: readonly { partition: number; to: string }[], at: string | null): void {
    if (generation !== this.generation) return;
    this.progressed_at = performance.now();
    this.backoff.reset();
    this.fault = null;
    this.state = this.moving;
    if (at !== null) this.applied_at = at;
    for (const { partition, to } of moves) this.deps.progress.advance(this.projection.name, partition, to);
  }

  /** Looks at the lag; starts the consumer again when it is behind and stood still for `stall_ms`. */
  async observe(): Promise<void> {
    const { db, stall_ms } = this.deps;
    const p = this.projection;
    const stored = await readCheckpoints(db, p);
    this.silence.forget(stored.values());
    const live = Math.max(0, ...[...stored.values()].map(({ version }) => version));
    // Whoever does not drive it must say so as well.
    if (live > p.version && this.state === 'standby') this.supersede(new Superseded(p.name, live, p.version));
    const at = isEventProjection(p) ? this.deps.progress.at(p.name, 0) : undefined;
    // What this process passed in memory counts: the stored checkpoint follows within a second.
    const behind = await behindOf(this.deps, p, at === undefined ? stored : new Map([[0, { position: at }]]));
    const now = performance.now();
    if (behind === 0) this.behind_since = null;
    else this.behind_since ??= now;
    const worked = this.behind_since !== null && this.progressed_at > this.behind_since && this.applied_at !== null;
    const seconds =
      this.behind_since === null
        ? 0
        : worked
          ? (Date.now() - Date.parse(this.applied_at!)) / 1000
          : (now - this.behind_since) / 1000;
    this.lag = { behind, seconds: Math.max(0, seconds) };
    if ((this.state !== 'running' && this.state !== 'building') || this.behind_since === null) return;
    const still_ms = now - Math.max(this.behind_since, this.progressed_at);
    if (still_ms >= stall_ms) this.interrupt(new Stalled(p.name, Math.round(still_ms)));
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
