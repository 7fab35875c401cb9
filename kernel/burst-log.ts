import type { Logger } from '../engines/log/port';

/** An event of an outage: the kind that it is counted under, and the facts that describe it. */
export interface Occurrence {
  /** From a small set, such as the routes. */
  kind: string;
  facts: object;
}

/** Time between two lines of a lasting outage, and time without an event after which an outage has ended. */
const MINUTE_MS = 60_000;

/**
 * Logs events that an outage causes thousands of: a line when it begins, one a minute while it lasts, and one when it
 * has ended, as `state`. Each line has the number of events since the line before, by kind, and the facts of the
 * latest; the last line has the number of all as `total` and the time of the latest as `latest_at`. Each event is a
 * line at level debug.
 */
export function createBurstLog(log: Logger, level: 'warn' | 'error', message: string): (one: Occurrence) => void {
  let counts = new Map<string, number>();
  let latest: object = {};
  let latest_time = 0;
  let total = 0;
  let running = false;
  // By a monotonic clock: an outage outlives a clock that is set.
  let latest_at = 0;
  let written_at = 0;

  function write(state: 'begun' | 'lasting' | 'ended', more: object = {}): void {
    let count = 0;
    for (const n of counts.values()) count += n;
    log[level]({ state, count, by: Object.fromEntries(counts), ...more, ...latest }, message);
    counts = new Map();
    written_at = performance.now();
  }

  function look(): void {
    const due = Math.min(latest_at, written_at) + MINUTE_MS;
    // Keeps no process alive.
    setTimeout(next, Math.max(1, due - performance.now())).unref();
  }

  function next(): void {
    const now = performance.now();
    if (now - latest_at >= MINUTE_MS) {
      write('ended', { total, latest_at: new Date(latest_time).toISOString() });
      running = false;
      return;
    }
    if (now - written_at >= MINUTE_MS) write('lasting');
    look();
  }

  return ({ kind, facts }) => {
    log.debug(facts, message);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    latest = facts;
    latest_time = Date.now();
    latest_at = performance.now();
    if (running) {
      total += 1;
      return;
    }
    [running, total] = [true, 1];
    write('begun');
    look();
  };
}
