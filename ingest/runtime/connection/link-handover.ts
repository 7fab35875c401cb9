import { pause } from '../../../lib/async/signal';
import type { LinkFence, LinkLeases, Successor } from './link-leases';
import type { LinkTimings } from './link-timings';

/** Replaces an unavailable answer of the database: another process may have taken the link, or want it. */
export const UNKNOWN: Successor = { taken: true, wanted: true };

/** The former holder, which reads on for a while after it has given the link away. */
export class FormerHolder {
  private until: number;

  /** @param until by `performance.now()`; null when it gave nothing away */
  constructor(until: number | null) {
    this.until = until ?? 0;
  }

  /** Moment until which it reads on, by `performance.now()`; null when it does not. */
  get reads_on_until(): number | null {
    return this.until > performance.now() ? this.until : null;
  }

  /** This process reads by itself now, so that its later sessions do not follow the former holder. */
  forget(): void {
    this.until = 0;
  }
}

export interface LeavingLink {
  fence: LinkFence;
  leases: Pick<LinkLeases, 'successor'>;
  timings: Pick<LinkTimings, 'look_ms' | 'read_on_ms'>;
  /** Moment at which this process ends reading, whatever its successor does; by `performance.now()`. */
  until(): number;
  /** Aborted when this process reads no more. */
  signal: AbortSignal;
}

/**
 * Resolves when the successor has opened all of the link and messages in transit have arrived, when no process wants
 * the link, or on timeout. False while no process has taken it.
 */
export async function awaitSuccessor({ fence, leases, timings, until, signal }: LeavingLink): Promise<boolean> {
  let taken = false;
  while (!signal.aborted && performance.now() < until()) {
    const found = await leases.successor(fence).catch(() => UNKNOWN);
    taken = found.taken;
    if (!taken && !found.wanted) break;
    if (found.state !== undefined) {
      await pause(timings.read_on_ms, signal);
      break;
    }
    await pause(timings.look_ms, signal);
  }
  return taken;
}
