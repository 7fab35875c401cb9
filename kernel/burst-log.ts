import type { Logger } from '../engines/log/port';

/** An event of an outage: the kind that it is counted under, and the facts that describe it. */
export interface Occurrence {
  /** From a small set, such as the routes. */
  kind: string;
  facts: object;
}

/**
 * Logs events of a kind that an outage causes thousands of: the first at once, then at most one line in `every_ms`
 * with the number of events since the line before, by kind, and the facts of the latest. Each is a line at level debug.
 */
export function createBurstLog(
  log: Logger,
  level: 'warn' | 'error',
  message: string,
  every_ms = 1000,
): (one: Occurrence) => void {
  let counts = new Map<string, number>();
  let latest: object = {};
  let timer: NodeJS.Timeout | undefined;

  function write(): void {
    let count = 0;
    for (const n of counts.values()) count += n;
    log[level]({ count, by: Object.fromEntries(counts), ...latest }, message);
    counts = new Map();
    // Keeps no process alive longer than a second.
    timer = setTimeout(next, every_ms);
  }

  function next(): void {
    timer = undefined;
    if (counts.size > 0) write();
  }

  return ({ kind, facts }) => {
    log.debug(facts, message);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    latest = facts;
    if (timer === undefined) write();
  };
}
