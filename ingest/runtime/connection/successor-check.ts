import type { Json } from '../../../lib/json/json';
import { pause } from '../../../lib/async/signal';
import type { Adapter, Received } from './adapter';
import { UNKNOWN } from './link-handover';
import type { LinkFence, LinkLeases, Successor } from './link-leases';
import type { LinkTimings } from './link-timings';

/** Checks before a message is judged by a slow successor: its own report takes one or two. */
const LOOKS_TO_SETTLE = 4;

/**
 * Decides about messages that a holder receives after another process has taken its link: this process stores those
 * that the successor cannot have received, and the successor alone the others.
 */
export class SuccessorCheck {
  /** The last read of the successor's report, shared by all waiting messages. */
  private looked: Promise<Successor> | undefined;
  private give_up_at: number | undefined;

  constructor(
    private readonly adapter: Pick<Adapter, 'beforeSuccessor'>,
    private readonly fence: LinkFence,
    private readonly leases: Pick<LinkLeases, 'successor'>,
    private readonly timings: Pick<LinkTimings, 'handover_ms' | 'look_ms'>,
  ) {}

  /**
   * Waits until the successor has opened all of the link, at most for the length of a handover: it has not received
   * messages of a kind that it has not opened by then. A successor that gives up earlier, or fails and opens again,
   * receives nothing for a while, whatever it had opened before.
   * @param own kept state of this process
   */
  async isMissedBySuccessor(received: Received, own: Json): Promise<boolean> {
    const { adapter, timings } = this;
    if (!adapter.beforeSuccessor) return false;
    const now = performance.now();
    this.give_up_at ??= now + timings.handover_ms;
    const late_at = Math.max(this.give_up_at, now + LOOKS_TO_SETTLE * timings.look_ms);
    for (;;) {
      const late = performance.now() >= late_at;
      const { state, beginning } = await (this.looked ??= this.look());
      const known = state ?? beginning;
      const is_before = known === undefined || adapter.beforeSuccessor(received, known, own);
      if (state !== undefined || late) return is_before;
      await pause(timings.look_ms);
    }
  }

  /**
   * Reads the successor's report. Cached until the next check is due; for good once the successor has opened
   * everything.
   */
  private async look(): Promise<Successor> {
    const found = await this.leases.successor(this.fence).catch(() => UNKNOWN);
    if (found.state === undefined) void pause(this.timings.look_ms).then(() => (this.looked = undefined));
    return found;
  }
}
