import type { Database, Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { allSettledOrThrow } from '../../../lib/async/all-settled';
import { readAhead } from '../../../lib/async/read-ahead';
import { applyCarefully, applyPlainly, DataFailure } from '../drive/apply';
import { saveProgress } from './build-progress';
import { sourceOf } from '../checkpoint/checkpoints';
import { positionOf, type Item, type Parked } from '../dead-letter/dead-letters';
import { isConflict } from '../../../kernel/failures';
import { RebuildRunning } from './lock';
import type { Page, RebuildSource } from './source';
import { ident } from '../../../kernel/sql';

/**
 * Partitions replayed at a time: while one waits for its commit or decodes, another keeps the database busy. The live
 * side also reads them concurrently.
 */
const LANES = 2;

/** Parameters of a replay. */
export interface ReplayRun {
  db: Database;
  source: RebuildSource;
  /** Schema of the new tables. */
  shadow: string;
  /** Records per write transaction. */
  batch_records: number;
  /** @throws the reason for an early end of the rebuild */
  goOn(): void;
  /** Called after each written page. */
  onRead(phase: 'replay' | 'swap'): void;
}

/** Next page of a partition, undefined at its end, and the position after it. */
interface Step {
  partition: number;
  page: Page | undefined;
  at: string;
}

/** Reads a projection's source and writes the new tables, up to given positions. */
export class Replay {
  /** Token of the build of the new tables. */
  token = '';
  /** Position up to which each partition was replayed. */
  readonly at = new Map<number, string>();
  /** True until the load phase has ended. */
  loading = true;
  /** Records (or events) read. */
  done = 0;

  constructor(
    private readonly p: Projection,
    private readonly run: ReplayRun,
  ) {}

  /** Continues from these positions, with `done` records read: after an earlier run, or after a rollback. */
  backTo(before: ReadonlyMap<number, string>, done: number): void {
    this.at.clear();
    for (const [partition, position] of before) this.at.set(partition, position);
    this.done = done;
  }

  /** Replays every partition up to `goal`: within `tx` when given, else some partitions at a time. */
  async to(goal: Map<number, string>, tx: Queryable | undefined) {
    const started = performance.now();
    const done_before = this.done;
    const partitions = [...goal];
    let failed = false;
    const lane = () =>
      this.lane(partitions, tx, () => failed).catch((error: unknown) => {
        failed = true;
        throw error;
      });
    await allSettledOrThrow(Array.from({ length: tx ? 1 : LANES }, lane));
    return { left: this.done - done_before, seconds: (performance.now() - started) / 1000 };
  }

  /**
   * Replays these partitions one after the other, until none is left or another lane failed. Reading and decoding the
   * following page, also of the next partition, overlaps with the writing of a page.
   */
  private async lane(partitions: [number, string][], tx: Queryable | undefined, failed: () => boolean) {
    const steps = readAhead(this.stepsOf(partitions), this.run.batch_records, ({ page }) => page?.read ?? 0);
    for await (const { partition, page, at } of steps) {
      if (failed()) return;
      this.run.goOn();
      if (page) await this.write(partition, page, tx);
      this.at.set(partition, at);
      if (!page) continue;
      this.done += page.read;
      this.run.onRead(tx ? 'swap' : 'replay');
    }
  }

  private async *stepsOf(partitions: [number, string][]): AsyncGenerator<Step, void> {
    for (let next = partitions.shift(); next; next = partitions.shift()) {
      const [partition, to] = next;
      const pages = this.run.source.read(partition, this.at.get(partition), to, this.run.batch_records);
      for await (const page of pages) yield { partition, page, at: page.next };
      yield { partition, page: undefined, at: to };
    }
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
        return await this.run.db.transaction(async (tx) => {
          const absent = await this.enter(tx, 'off'); // the swap's commit flushes everything before it
          if (careful) await carefully(tx, absent);
          else {
            const loading = { ...mode, loading: this.loading };
            await applyPlainly(this.p, present(items, absent), presentParked(undecodable, absent), tx, loading);
          }
          await saveProgress(tx, this.p.name, partition, page);
        });
      } catch (error) {
        if (error instanceof DataFailure && !careful) careful = true;
        else if (isConflict(error) && tries < 10) tries += 1;
        else throw error;
      }
    }
  }

  /**
   * Points the transaction at the shadow. The lock comes first and names the schema: when the schema is gone or another
   * rebuild's, this throws instead of letting the search path fall through to the live tables. Returns the positions
   * that are parked or dropped live: the live tables do not have those effects either. One round trip per page.
   */
  async enter(tx: Queryable, synchronous_commit?: 'off'): Promise<ReadonlySet<string>> {
    const [mine] = await tx.query<{ absent: string[] }>(
      `select set_config('search_path', $2, true),
         set_config('synchronous_commit', coalesce($3, current_setting('synchronous_commit')), true),
         array(select partition || '/' || position from public.dead_letters
               where projection = $4 and source = $5 and status in ('parked', 'dropped')) as absent
       from (select from ${ident(this.run.shadow)}.rebuild_run where token = $1 for share) mine`,
      [this.token, `${ident(this.run.shadow)}, public`, synchronous_commit ?? null, this.p.name, sourceOf(this.p)],
    );
    if (!mine) throw new RebuildRunning(this.p.name);
    return new Set(mine.absent);
  }
}

const placeKey = (item: Parked['item']): string => {
  const { partition, position } = positionOf(item);
  return `${partition}/${position}`;
};
const present = (items: Item[], absent: ReadonlySet<string>): Item[] =>
  absent.size === 0 ? items : items.filter((item) => !absent.has(placeKey(item)));
const presentParked = (parked: Parked[], absent: ReadonlySet<string>): Parked[] =>
  parked.filter(({ item }) => !absent.has(placeKey(item)));
