import { pause } from '../../../lib/async/signal';
import { type HeldLock, LockLost } from '../../../engines/locks/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import { loadEndings } from '../drive/apply';
import { beginBuild, endBuild, keepLoaded, resumeBuild } from './build-progress';
import { checkEngine, lockCheckpoints, readCheckpoints, Superseded, type Checkpoint } from '../checkpoint/checkpoints';
import { isConflict } from '../../../kernel/failures';
import { ident } from '../../../kernel/sql';
import { withRebuildLock } from './lock';
import type { RebuildOptions, RebuildProgress, RebuildResult } from './options';
import { REBUILD_SOURCES, type RebuildSource } from './source';
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
import { mergeDeadLetters, takeOverCheckpoints } from '../checkpoint/swap-checkpoints';
import type { Projection } from '../../../kernel/projection';

export type { RebuildOptions, RebuildProgress, RebuildResult } from './options';
export { RebuildRunning } from './lock';
export { HistoryTruncated as HistoryGone, type ReadArchived } from './source';

/** Records behind up to which the rest is replayed inside the swap. */
const SWAP_BELOW = 2000;
/** Rounds of catching up before the swap replays all that is left: a faster live side must not starve it. */
const MAX_ROUNDS = 50;
const SWAP_TRIES = 60;

/**
 * Builds new tables of the projection from its whole source while the old ones serve and live batches continue, then
 * swaps in one transaction; readers never see a gap. The shadow is never ahead of the live checkpoint. A crash at any
 * point leaves the live side untouched: the next run continues, or starts over where continuing would be wrong. Items
 * parked or dropped live stay unapplied; items that fail only here are parked at the swap. Design §7.
 * @throws RebuildRunning, HistoryGone, EngineMismatch; LockLost when the connection that excludes erasures broke: run
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
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const { left, seconds } = await this.replay.to(await this.goal(db), undefined);
      if (left <= SWAP_BELOW && seconds < 1) break;
    }
    await analyzeTables(db, this.p.tables, this.shadow);
    const parked = await this.swap();
    this.report('done');
    return { records: this.replay.done, seconds: (performance.now() - started) / 1000, parked };
  }

  /**
   * Continues an interrupted build of the same program, or creates a new shadow. Every write locks its `rebuild_run`
   * row, so that this build stops when another process dropped the schema or took it over.
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
    for (const step of await this.loadStep((tx) => loadEndings(this.p, tx))) await this.loadStep(step);
    await this.loadStep((tx) => keepLoaded(tx, this.p.name));
    this.replay.loading = false;
  }

  /** Creates each index in its own transaction, so that an interrupted build continues with the next one. */
  private async makeLateIndexes(): Promise<void> {
    const { late_indexes = [], tables } = this.p;
    for (const index of late_indexes) {
      await this.loadStep(async (tx) => {
        await tx.query('set local search_path = public');
        await cloneLateIndexes(tx, tables, this.shadow, [index]);
      });
    }
  }

  /** Runs a step without parallel workers, so that the live side keeps its cores. */
  private async loadStep<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    this.goOn();
    return this.options.db.transaction(async (tx) => {
      await this.replay.enter(tx, 'off');
      await tx.query('set local max_parallel_workers_per_gather = 0');
      await tx.query('set local max_parallel_maintenance_workers = 0');
      return work(tx);
    });
  }

  /** Database view whose statements run on the new tables. */
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

  /** Live checkpoints: limits of the replay. */
  private async goal(db: Queryable): Promise<Map<number, string>> {
    const live = await readCheckpoints(db, this.p);
    return this.goalOf(live);
  }

  private async goalOf(live: Map<number, Checkpoint>): Promise<Map<number, string>> {
    checkEngine(this.p, live.values(), this.source.engine);
    for (const { version } of live.values()) {
      if (version > this.p.version && !this.options.older) throw new Superseded(this.p.name, version, this.p.version);
    }
    const goal = await this.source.goal(new Map([...live].map(([partition, { position }]) => [partition, position])));
    this.total = this.source.count(goal);
    return goal;
  }

  /**
   * Pauses the live side at its fence, replays the rest, and swaps the tables; retries while readers hold the old
   * tables.
   */
  private async swap(): Promise<number> {
    const { db, lock_timeout_ms = 500 } = this.options;
    for (let tries = 1; ; tries += 1) {
      const before = new Map(this.replay.at);
      const done_before = this.replay.done;
      // Alternates the order, because readers of several tables lock them in an order of their own.
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
          // From here on an erasure waits for the tables. The new tables would undo an erasure from the time of a lost
          // lock.
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

  /** @throws the reason for an early end: the caller's abort, or the loss of the lock */
  private goOn(): void {
    this.options.signal?.throwIfAborted();
    this.lock.signal.throwIfAborted();
  }

  private report(phase: RebuildProgress['phase']): void {
    this.options.onProgress?.({ phase, done: this.replay.done, total: this.total });
  }
}
