import { pause } from '../../kernel/signal';
import { type HeldLock, LockLost } from '../../engines/locks/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { endLoading } from './apply';
import { beginBuild, endBuild, keepLoaded, resumeBuild } from './build-progress';
import { checkEngine, lockCheckpoints, readCheckpoints, Superseded, type Checkpoint } from './checkpoints';
import { isConflict } from '../../kernel/failures';
import { ident } from '../../kernel/sql';
import { withRebuildLock } from './rebuild-lock';
import type { RebuildOptions, RebuildProgress, RebuildResult } from './rebuild-options';
import { REBUILD_SOURCES, type RebuildSource } from './rebuild-source';
import { Replay } from './replay';
import {
  analyzeTables,
  cloneLateIndexes,
  cloneTables,
  lockTables,
  setLockTimeout,
  shadowOf,
  swapTables,
} from './shadow';
import { mergeDeadLetters, takeOverCheckpoints } from './take-over';
import type { Projection } from '../../kernel/projection';

export type { RebuildOptions, RebuildProgress, RebuildResult } from './rebuild-options';
export { RebuildRunning } from './rebuild-lock';
export { HistoryGone, type ReadArchived } from './rebuild-source';

/** Behind by no more than this, the rest is replayed inside the swap. */
const SWAP_BELOW = 2000;
/**
 * Rounds of catching up before the swap is done with whatever is left: a live side that is faster must not starve it.
 */
const MOST_ROUNDS = 50;
const SWAP_TRIES = 60;

/**
 * Builds the projection's tables anew from its whole source while the old ones serve and live batches go on, then swaps
 * in one transaction; readers never see a gap. The shadow is never ahead of the live checkpoint. Killed at any point it
 * leaves the live side untouched: run again it goes on, or begins anew where that would be wrong. What is parked or
 * dropped live stays unapplied; what fails only here is parked at the swap. Design §7.
 * @throws RebuildRunning, HistoryGone, EngineMismatch; LockLost when the connection that keeps erasures away broke: run
 * it again
 */
export async function rebuild(options: RebuildOptions): Promise<RebuildResult> {
  const p = options.projections.find(({ name }) => name === options.name);
  if (!p) {
    throw new Error(`no projection ${options.name}; known: ${options.projections.map(({ name }) => name).join(', ')}`);
  }
  return withRebuildLock(options.db, p.name, (lock) => new Rebuild(p, options, lock).run());
}

class Rebuild {
  private readonly shadow: string;
  private readonly source: RebuildSource;
  private readonly replay: Replay;
  private total: number | null = null;

  constructor(
    private readonly p: Projection,
    private readonly options: RebuildOptions,
    private readonly lock: HeldLock,
  ) {
    this.shadow = shadowOf(p.name);
    this.source = REBUILD_SOURCES[p.from.kind](p, options);
    this.replay = new Replay(p, {
      db: options.db,
      source: this.source,
      shadow: this.shadow,
      batch_records: options.batch_records ?? 5000,
      goOn: () => this.goOn(),
      onRead: (phase) => this.report(phase),
    });
  }

  async run(): Promise<RebuildResult> {
    const started = performance.now();
    const { db } = this.options;
    await this.goal(db);
    await this.prepare();
    if (this.replay.loading) {
      await this.replay.to(await this.goal(db), undefined);
      await this.endLoad();
    }
    await this.makeLateIndexes();
    await this.options.trim?.(this.p.name, this.newTables(), this.options.signal);
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const { left, seconds } = await this.replay.to(await this.goal(db), undefined);
      if (left <= SWAP_BELOW && seconds < 1) break;
    }
    await analyzeTables(db, this.p.tables, this.shadow);
    const parked = await this.swap();
    this.report('done');
    return { records: this.replay.done, seconds: (performance.now() - started) / 1000, parked };
  }

  /**
   * Goes on where the same program was interrupted, or lays out the shadow anew. Its `rebuild_run` row is locked by
   * every write: who dropped the schema or took it over stops us.
   */
  private async prepare(): Promise<void> {
    const { db } = this.options;
    const { engine } = this.source;
    const reached = await db.transaction((tx) => resumeBuild(tx, this.p, engine, this.shadow));
    if (reached) {
      this.replay.token = reached.token;
      this.replay.loading = reached.loading;
      return this.replay.backTo(reached.places, reached.records);
    }
    await db.query(`drop schema if exists ${ident(this.shadow)} cascade`);
    this.replay.token = await db.transaction(async (tx) => {
      await tx.query(`create schema ${ident(this.shadow)}`);
      await cloneTables(tx, [...this.p.tables, 'dead_letters'], this.shadow, this.p.late_indexes);
      return beginBuild(tx, this.p, engine, this.shadow);
    });
  }

  /** Completes the loaded rows: ledger and counts. Later records are replayed onto them. */
  private async endLoad(): Promise<void> {
    await this.loadStep(async (tx) => {
      await endLoading(this.p, tx);
      await keepLoaded(tx, this.p.name);
    });
    this.replay.loading = false;
  }

  /** Each index is a step of its own: a build that is killed between two of them goes on with the second. */
  private async makeLateIndexes(): Promise<void> {
    const { late_indexes = [], tables } = this.p;
    for (const index of late_indexes) {
      await this.loadStep(async (tx) => {
        await tx.query('set local search_path = public');
        await cloneLateIndexes(tx, tables, this.shadow, [index]);
      });
    }
  }

  /** The live side keeps its cores. */
  private async loadStep(work: (tx: Queryable) => Promise<void>): Promise<void> {
    this.goOn();
    await this.options.db.transaction(async (tx) => {
      await this.replay.enter(tx, 'off');
      await tx.query('set local max_parallel_workers_per_gather = 0');
      await tx.query('set local max_parallel_maintenance_workers = 0');
      await work(tx);
    });
  }

  /** The database as the new tables' statements see it. */
  private newTables(): Database {
    const { db } = this.options;
    const within = <T>(work: (tx: Queryable) => Promise<T>): Promise<T> =>
      db.transaction(async (tx) => {
        await this.replay.enter(tx);
        return work(tx);
      });
    return {
      query: (...statement) => within((tx) => tx.query(...statement)),
      transaction: within,
      hold: (lock, work) => db.hold(lock, work),
    };
  }

  /** Live checkpoints: how far a replay may go. */
  private async goal(db: Queryable): Promise<Map<number, string>> {
    const live = await readCheckpoints(db, this.p);
    return this.goalOf(live);
  }

  private async goalOf(live: Map<number, Checkpoint>): Promise<Map<number, string>> {
    checkEngine(this.p, live.values(), this.source.engine);
    for (const { version } of live.values()) {
      if (version > this.p.version) throw new Superseded(this.p.name, version, this.p.version);
    }
    const goal = await this.source.goal(new Map([...live].map(([partition, { position }]) => [partition, position])));
    this.total = this.source.count(goal);
    return goal;
  }

  /**
   * Holds the live side at its fence, replays the rest, and changes the tables over; tried again while readers hold the
   * old tables.
   */
  private async swap(): Promise<number> {
    const { db, lock_timeout_ms = 500 } = this.options;
    for (let tries = 1; ; tries += 1) {
      const before = new Map(this.replay.at);
      const done_before = this.replay.done;
      // Readers of several tables take them in an order of their own: where this one fails, the other may do.
      const order = tries % 2 === 1 ? this.p.tables : [...this.p.tables].reverse();
      try {
        return await db.transaction(async (tx) => {
          await setLockTimeout(tx, lock_timeout_ms);
          const live = await lockCheckpoints(tx, this.p);
          await this.replay.enter(tx);
          await this.replay.to(await this.goalOf(live), tx);
          await tx.query('set local search_path = public');
          await cloneTables(tx, this.p.tables, this.shadow);
          await lockTables(tx, order, lock_timeout_ms);
          await swapTables(tx, this.p.tables, this.shadow);
          // From here on an erasure waits for the tables. One that was done before, while the lock was lost, would be
          // undone by them.
          if (!(await this.lock.stillHeld(tx))) throw new LockLost(this.lock.signal.reason);
          const parked = await mergeDeadLetters(tx, this.shadow);
          await takeOverCheckpoints(tx, this.p, this.source.engine, this.replay.at);
          await endBuild(tx, this.p.name);
          await tx.query(`drop schema ${ident(this.shadow)} cascade`);
          return parked;
        });
      } catch (error) {
        if (!isConflict(error) || tries >= SWAP_TRIES) throw error;
        this.replay.backTo(before, done_before);
        this.goOn();
        await pause(50 + Math.random() * 100);
        await this.replay.to(await this.goal(db), undefined);
      }
    }
  }

  /** @throws what ends the rebuild early: its caller's wish, or the loss of its lock */
  private goOn(): void {
    this.options.signal?.throwIfAborted();
    this.lock.signal.throwIfAborted();
  }

  private report(phase: RebuildProgress['phase']): void {
    this.options.onProgress?.({ phase, done: this.replay.done, total: this.total });
  }
}
