import type { ReadModels, WaitBound } from '../../../app/services';
import type { EventStore } from '../../../engines/event-store/port';
import type { Queryable, Row } from '../../../engines/postgres/port';
import type { Wakeups } from '../../../engines/wakeups/port';
import { Collector } from '../../../lib/async/collector';
import { BEGINNING } from '../checkpoint/checkpoints';
import { DOMAIN_EVENTS } from '../../../domain/common/records';
import { Progress } from '../checkpoint/progress';

/** Sent after the commit of a domain-event projection, for waiting readers in other processes. */
export const CHECKPOINT_WAKEUP = 'checkpoints';

/** Milliseconds that an operation waits for the read models of its callers. Design §5. */
export const WAIT_MS = 2000;
/** First and longest pause between reads of the checkpoints, without a signal in this process. */
const FIRST_LOOK_MS = 15;
const LONGEST_LOOK_MS = 100;

export interface ReadModelDeps {
  db: Queryable;
  events: Pick<EventStore, 'compare'>;
  wakeups: Wakeups;
  /** Progress of the runtime in this process; absent in a process that drives no projection. */
  progress?: Progress;
  /**
   * Version of each read model in this release; a read model of another version may have no driver. Default: none
   * differs.
   */
  versions?: ReadonlyMap<string, number>;
  /** Read models that are not built yet, for which no operation waits. Default: none. */
  unbuilt?: { has(projection: string): boolean };
  /** Default {@link WAIT_MS}. */
  wait_ms?: number;
}

/** Position that a wait must reach. */
interface Goal {
  projection: string;
  partition: number;
  reached(position: string): boolean;
}

/** Checkpoints that one wait reads. */
interface Look {
  source: string;
  names: ReadonlySet<string>;
}

/**
 * Waits until read models have passed a write. The process that drives the projection signals in memory; other
 * processes read the checkpoints, woken by {@link CHECKPOINT_WAKEUP}. Bounded: returns false on timeout and never
 * throws for it.
 */
export function createReadModels(deps: ReadModelDeps): ReadModels & { close(): void } {
  const { db, events, wakeups, unbuilt, versions, wait_ms = WAIT_MS } = deps;
  // Positions of read models of another version at which a wait timed out; waits skip them until they move.
  const standing = new Map<string, string>();
  const progress = deps.progress ?? new Progress();
  const off = wakeups.on(CHECKPOINT_WAKEUP, () => progress.wake());

  // One statement at a time for all waits of this process, because a wake-up makes each of them read.
  const looks = new Collector<Look, Row[]>({
    async send(asked) {
      const found = new Map<string, Row[]>();
      for (const source of new Set(asked.map((one) => one.source))) {
        const names = asked.flatMap((one) => (one.source === source ? [...one.names] : []));
        const rows = await db.query(
          'select projection, partition, position, version from checkpoints where source = $1 and projection = any($2)',
          [source, [...new Set(names)]],
          'checkpoints_reached',
        );
        found.set(source, rows);
      }
      return asked.map(({ source, names }) => found.get(source)!.filter((row) => names.has(row.projection as string)));
    },
  });

  async function reach(source: string, goals: readonly Goal[], bound: WaitBound = {}): Promise<boolean> {
    const { within_ms = wait_ms, until = Infinity } = bound;
    const deadline = Math.min(performance.now() + within_ms, until);
    // A build has no bound; reads of its tables are refused meanwhile.
    let open = goals.filter(({ projection }) => !unbuilt?.has(projection));
    let all = open.length === goals.length;
    let pause = FIRST_LOOK_MS;
    let look_at = 0;
    let foreign: Row[] = [];
    for (;;) {
      open = open.filter((goal) => {
        const position = progress.at(goal.projection, goal.partition);
        return position === undefined || !goal.reached(position);
      });
      if (open.length === 0) return all;
      const now = performance.now();
      const driven_here = open.every((goal) => progress.at(goal.projection, goal.partition) !== undefined);
      if (look_at === 0 && driven_here) look_at = now + LONGEST_LOOK_MS;
      if (now >= look_at) {
        const rows = await looks.add({ source, names: new Set(open.map((goal) => goal.projection)) });
        const stored = new Map(rows.map((row) => [`${row.projection}/${row.partition}`, row.position as string]));
        open = open.filter((goal) => {
          const position = stored.get(`${goal.projection}/${goal.partition}`);
          return position === undefined || !goal.reached(position);
        });
        foreign = rows.filter(({ projection, version }) => (versions?.get(projection) ?? version) !== version);
        for (const { projection, partition, position } of foreign) {
          if (standing.get(`${projection}/${partition}`) !== position) continue;
          open = open.filter((goal) => goal.projection !== projection || goal.partition !== partition);
          all = false;
        }
        if (open.length === 0) return all;
        look_at = performance.now() + pause;
        pause = Math.min(pause * 2, LONGEST_LOOK_MS);
      }
      const left = deadline - performance.now();
      if (left <= 0) {
        for (const { projection, partition, position } of foreign) standing.set(`${projection}/${partition}`, position);
        return false;
      }
      const woken_from = performance.now();
      const rest = Math.min(left, Math.max(1, look_at - woken_from));
      await progress.next(rest);
      // A signal from another process carries no position: read at once, not at the end of the pause.
      if (!driven_here && performance.now() - woken_from < rest - 1) look_at = 0;
    }
  }

  return {
    passed(position, projections, bound) {
      const reached = (at: string) => at !== BEGINNING && events.compare(at, position) >= 0;
      return reach(
        DOMAIN_EVENTS,
        projections.map((projection) => ({ projection, partition: 0, reached })),
        bound,
      );
    },
    applied(topic, ends, projections) {
      const goals: Goal[] = [];
      for (const [partition, end] of ends) {
        const reached = (at: string) => Number(at) >= end;
        for (const projection of projections) goals.push({ projection, partition, reached });
      }
      return reach(topic, goals);
    },
    close: off,
  };
}
