import { pause } from '../../kernel/signal';
import { type HeldLock, LockLost } from '../../engines/locks/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import { applyCarefully, applyPlainly, DataFailure } from './apply';
import { checkEngine, lockCheckpoints, readCheckpoints, sourceOf, Superseded, type Checkpoint } from './checkpoints';
import { placeOf, type Item, type Parked } from './dead-letters';
import { isContention } from './failures';
import { RebuildRunning, withRebuildLock } from './rebuild-lock';
import { REBUILD_SOURCES, type Page, type RebuildSource, type SourceDeps } from './rebuild-source';
import { analyzeTables, cloneLateIndexes, cloneTables, ident, shadowOf, swapTables } from './shadow';
import { beginBuild, endBuild, keepLoaded, keepPlace, resumeBuild } from './build-progress';
import type { Projection } from '../../kernel/projection';

export interface RebuildProgress {
  phase: 'replay' | 'swap' | 'done';
  /** Records (or events) read. */
  done: number;
  /** Up to the live checkpoint as last looked at; null when it cannot be counted (domain events). */
  total: number | null;
}

export interface RebuildOptions extends SourceDeps {
  db: Database;
  projections: readonly Projection[];
  name: string;
  onProgress?: (progress: RebuildProgress) => void;
  /** Records per write transaction. Default 5000: about a tenth of a second. */
  batch_records?: number | undefined;
  /** Longest wait for readers of the old tables at the swap, before it is given up and tried again. Default 500 ms. */
  lock_timeout_ms?: number;
  signal?: AbortSignal;
}

export interface RebuildResult {
  records: number;
  seconds: number;
  /** Records that could not be applied and wait as dead letters of the new tables. */
  parked: number;
}

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
 * Partitions replayed at a time: while one waits for its commit or decodes, another keeps the database busy. The live
 * side reads them side by side too.
 */
const LANES = 2;

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
  private token = '';
  private readonly source: RebuildSource;
  private readonly at = new Map<number, string>();
  private loading = true;
  private done = 0;
  private total: number | null = null;

  constructor(
    private readonly p: Projection,
    private readonly options: RebuildOptions,
    private readonly lock: HeldLock,
  ) {
    this.shadow = shadowOf(p.name);
    this.source = REBUILD_SOURCES[p.from.kind](p, options);
  }

  async run(): Promise<RebuildResult> {
    const started = performance.now();
    const { db } = this.options;
    await this.goal(db);
    await this.prepare();
    if (this.loading) {
      await this.replayTo(await this.goal(db), undefined);
      await this.endLoad();
    }
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const { left, seconds } = await this.replayTo(await this.goal(db), undefined);
      if (left <= SWAP_BELOW && seconds < 1) break;
    }
    await analyzeTables(db, this.p.tables, this.shadow);
    const parked = await this.swap();
    this.report('done');
    return { records: this.done, seconds: (performance.now() - started) / 1000, parked };
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
      ({ token: this.token, loading: this.loading, records: this.done } = reached);
      for (const [partition, position] of reached.places) this.at.set(partition, position);
      return;
    }
    await db.query(`drop schema if exists ${ident(this.shadow)} cascade`);
    this.token = await db.transaction(async (tx) => {
      await tx.query(`create schema ${ident(this.shadow)}`);
      await cloneTables(tx, [...this.p.tables, 'dead_letters'], this.shadow, this.p.late_indexes);
      return beginBuild(tx, this.p, engine, this.shadow);
    });
  }

  /**
   * What is done for all rows at once, and the late indexes; what arrived meanwhile is replayed onto them. The live
   * side keeps its cores.
   */
  private async endLoad(): Promise<void> {
    const { late_indexes = [], tables } = this.p;
    this.goOn();
    await this.options.db.transaction(async (tx) => {
      await this.enter(tx, 'off');
      await tx.query('set local max_parallel_workers_per_gather = 0');
      await tx.query('set local max_parallel_maintenance_workers = 0');
      await this.p.loaded?.(tx);
      await tx.query('set local search_path = public');
      await cloneLateIndexes(tx, tables, this.shadow, late_indexes);
      await keepLoaded(tx, this.p.name);
    });
    this.loading = false;
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

  /** Replays every partition up to `goal`; `tx` given, inside that transaction, else some partitions at a time. */
  private async replayTo(goal: Map<number, string>, tx: Queryable | undefined) {
    const started = performance.now();
    const done_before = this.done;
    const partitions = [...goal];
    let failed = false;
    const lane = async () => {
      for (let next = partitions.shift(); next && !failed; next = partitions.shift()) {
        await this.replayPartition(...next, tx, () => failed);
      }
    };
    const lanes = Array.from({ length: tx ? 1 : LANES }, () =>
      lane().catch((error: unknown) => {
        failed = true;
        throw error;
      }),
    );
    // No lane may still write when the failure is told.
    for (const ended of await Promise.allSettled(lanes)) if (ended.status === 'rejected') throw ended.reason;
    return { left: this.done - done_before, seconds: (performance.now() - started) / 1000 };
  }

  private async replayPartition(partition: number, to: string, tx: Queryable | undefined, failed: () => boolean) {
    const pages = this.source.read(partition, this.at.get(partition), to, this.options.batch_records ?? 5000);
    let next = pages.next();
    try {
      for (;;) {
        const { value: page, done } = await next;
        if (done) break;
        if (failed()) return;
        this.goOn();
        // Reading and decoding the next page overlaps with writing this one; a failed read is met when it is awaited.
        next = pages.next();
        next.catch(() => undefined);
        await this.write(partition, page, tx);
        this.at.set(partition, page.next);
        this.done += page.read;
        this.report(tx ? 'swap' : 'replay');
      }
    } finally {
      await pages.return().catch(() => undefined); // only after a failure is it still open, and then that one is thrown
    }
    this.at.set(partition, to);
  }

  private async write(partition: number, page: Page, outer: Queryable | undefined): Promise<void> {
    const { items, undecodable } = page;
    const mode = { rebuilding: true };
    const carefully = async (tx: Queryable, absent: ReadonlySet<string>) => {
      await applyCarefully(this.p, present(items, absent), presentParked(undecodable, absent), tx, mode);
    };
    if (outer) return carefully(outer, await this.enter(outer));
    for (let tries = 0, careful = false; ;) {
      try {
        return await this.options.db.transaction(async (tx) => {
          const absent = await this.enter(tx, 'off'); // the swap's commit flushes everything before it
          if (careful) await carefully(tx, absent);
          else {
            const loading = { ...mode, loading: this.loading };
            await applyPlainly(this.p, present(items, absent), presentParked(undecodable, absent), tx, loading);
          }
          await keepPlace(tx, this.p.name, partition, page);
        });
      } catch (error) {
        if (error instanceof DataFailure && !careful) careful = true;
        else if (isContention(error) && tries < 10) tries += 1;
        else throw error;
      }
    }
  }

  /**
   * Points the transaction at the shadow. The lock comes first and names the schema: if it is gone or another
   * rebuild's, this throws instead of letting the search path fall through to the live tables. Returns the places that
   * are parked or dropped live: those effects are not in the live tables either. One round trip: a page has few enough.
   */
  private async enter(tx: Queryable, synchronous_commit?: 'off'): Promise<ReadonlySet<string>> {
    const [mine] = await tx.query<{ absent: string[] }>(
      `select set_config('search_path', $2, true),
         set_config('synchronous_commit', coalesce($3, current_setting('synchronous_commit')), true),
         array(select partition || '/' || position from public.dead_letters
               where projection = $4 and source = $5 and status in ('parked', 'dropped')) as absent
       from (select from ${ident(this.shadow)}.rebuild_run where token = $1 for share) mine`,
      [this.token, `${ident(this.shadow)}, public`, synchronous_commit ?? null, this.p.name, sourceOf(this.p)],
    );
    if (!mine) throw new RebuildRunning(this.p.name);
    return new Set(mine.absent);
  }

  /**
   * Holds the live side at its fence, replays the rest, and changes the tables over; tried again while readers hold the
   * old tables.
   */
  private async swap(): Promise<number> {
    const { db, lock_timeout_ms = 500 } = this.options;
    for (let tries = 1; ; tries += 1) {
      const before = new Map(this.at);
      const done_before = this.done;
      try {
        return await db.transaction(async (tx) => {
          await tx.query(`set local lock_timeout = ${Math.round(lock_timeout_ms)}`);
          const live = await lockCheckpoints(tx, this.p);
          await this.enter(tx);
          await this.replayTo(await this.goalOf(live), tx);
          await tx.query('set local search_path = public');
          await cloneTables(tx, this.p.tables, this.shadow);
          await swapTables(tx, this.p.tables, this.shadow);
          // From here on an erasure waits for the tables. One that was done before, while the lock was lost, would be
          // undone by them.
          if (!(await this.lock.stillHeld(tx))) throw new LockLost(this.lock.signal.reason);
          const parked = await this.mergeDeadLetters(tx);
          await this.takeOverCheckpoints(tx);
          await endBuild(tx, this.p.name);
          await tx.query(`drop schema ${ident(this.shadow)} cascade`);
          return parked;
        });
      } catch (error) {
        if (!isContention(error) || tries >= SWAP_TRIES) throw error;
        for (const [partition, position] of before) this.at.set(partition, position);
        for (const partition of [...this.at.keys()]) if (!before.has(partition)) this.at.delete(partition);
        this.done = done_before;
        this.goOn();
        await pause(50 + Math.random() * 100);
        await this.replayTo(await this.goal(db), undefined);
      }
    }
  }

  private async mergeDeadLetters(tx: Queryable): Promise<number> {
    const columns = `projection, source, partition, position, stream, revision, type, account_id, record, record_key, headers,
      event, appended_at, reason, error, attempts, status, first_failed_at, last_failed_at, settled_at, silent`;
    const merged = await tx.query(
      `insert into public.dead_letters as d (${columns}) select ${columns} from ${ident(this.shadow)}.dead_letters order by id
       on conflict (projection, source, partition, position) do update
         set status = 'parked', settled_at = null, reason = excluded.reason, error = excluded.error, silent = true,
             last_failed_at = excluded.last_failed_at, attempts = d.attempts + 1
       returning 1 as one`,
    );
    return merged.length;
  }

  private async takeOverCheckpoints(tx: Queryable): Promise<void> {
    const partitions = [...this.at.keys()];
    await tx.query(
      `insert into checkpoints (projection, source, partition, engine, version, position)
       select $1, $2, partition, $3, $4, position from unnest($5::integer[], $6::text[]) as c (partition, position)
       on conflict (projection, source, partition) do update set version = excluded.version, position = excluded.position`,
      [
        this.p.name,
        sourceOf(this.p),
        this.source.engine,
        this.p.version,
        partitions,
        partitions.map((n) => this.at.get(n)!),
      ],
    );
    await tx.query('update checkpoints set version = $3 where projection = $1 and source = $2', [
      this.p.name,
      sourceOf(this.p),
      this.p.version,
    ]);
  }

  /** @throws what ends the rebuild early: its caller's wish, or the loss of its lock */
  private goOn(): void {
    this.options.signal?.throwIfAborted();
    this.lock.signal.throwIfAborted();
  }

  private report(phase: RebuildProgress['phase']): void {
    this.options.onProgress?.({ phase, done: this.done, total: this.total });
  }
}

const placeKey = (item: Parked['item']): string => {
  const { partition, position } = placeOf(item);
  return `${partition}/${position}`;
};
const present = (items: Item[], absent: ReadonlySet<string>): Item[] =>
  absent.size === 0 ? items : items.filter((item) => !absent.has(placeKey(item)));
const presentParked = (parked: Parked[], absent: ReadonlySet<string>): Parked[] =>
  parked.filter(({ item }) => !absent.has(placeKey(item)));
