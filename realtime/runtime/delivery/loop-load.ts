import { type EventLoopUtilization, performance } from 'node:perf_hooks';

/** Interval in milliseconds over which the share is measured, at most once. */
const OVER_MS = 100;
const LOOK_MS = 20;

/** The share of its time that this process's event loop has lately been at work, from 0 to 1. */
export class LoopLoad {
  private share = 0;
  private looked_at = performance.now();

  constructor(
    private readonly look: () => EventLoopUtilization = () => performance.eventLoopUtilization(),
    private last = look(),
  ) {}

  /** At this moment of the monotonic clock. */
  at(now: number): number {
    const elapsed = now - this.looked_at;
    if (elapsed < LOOK_MS) return this.share;
    const seen = this.look();
    const active = seen.active - this.last.active;
    const spent = active + seen.idle - this.last.idle;
    this.last = seen;
    this.looked_at = now;
    if (spent > 0) this.share += (active / spent - this.share) * (1 - Math.exp(-elapsed / OVER_MS));
    return this.share;
  }
}
