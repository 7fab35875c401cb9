import type { Logger } from '../engines/log/port';

/** An event of an outage: the kind that it is counted under, and the facts that describe it. */
export interface Occurrence {
  /** From a small set, such as the routes. */
  kind: string;
  facts: object;
}

/** Time between two lines of a lasting outage. */
const LASTING_MS = 60_000;
/** Time without an event after which an outage has ended. */
const QUIET_MS = 10_000;

/**
 * Logs events that an outage causes thousands of: a line when it begins, one a minute while it lasts, and one when it
 * has ended, as `state`. Each line has the number of events since the line before, by kind, and the facts of the
 * latest; the last line has the number of all as `total`. Each event is a line at level debug.
 */
export function createBurstLog(log: Logger, level: 'warn' | 'error', message: string): (one: Occurrence) => void {
  let counts = new Map<string, number>();
  let latest: object = {};
  let total = 0;
  let seen = 0;
  let written_at = 0;
  let running = false;

  function write(state: 'begun' | 'lasting' | 'ended', more: object = {}): void {
    let count = 0;
    for (const n of counts.values()) count += n;
    log[level]({ state, count, by: Object.fromEntries(counts), ...more, ...latest }, message);
    counts = new Map();
    written_at = Date.now();
  }

  function look(): void {
    // Keeps no process alive.
    setTimeout(next, QUIET_MS).unref();
  }

  function next(): void {
    if (total === seen) {
      write('ended', { total });
      running = false;
      return;
    }
    seen = total;
    if (Date.now() - written_at >= LASTING_MS) write('lasting');
    look();
  }

  return ({ kind, facts }) => {
    log.debug(facts, message);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    latest = facts;
    if (running) {
      total += 1;
      return;
    }
    [running, total, seen] = [true, 1, 1];
    write('begun');
    look();
  };
}
