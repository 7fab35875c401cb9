import { pause } from '../../../lib/async/signal';
import type { Adapter, Owner, Received } from './adapter';
import type { LinkFence, LinkLeases, Successor } from './link-leases';
import type { LinkTimings } from './link-timings';

/** Answers of the database before a message is judged by a slow successor: its own report takes one or two. */
const LOOKS_TO_SETTLE = 4;

export interface SuccessorCheckDeps {
  leases: Pick<LinkLeases, 'successor'>;
  timings: Pick<LinkTimings, 'handover_ms' | 'look_ms'>;
  /** Moment at which this process reads no more, by `performance.now()`. Default: it does not stop. */
  stopsReadingAt?(): number;
}

/** Finds the owners of messages that a holder receives after another process has taken its link. */
export class SuccessorCheck {
  /** The last read of the successor's report, shared by all waiting messages. */
  private looked: Promise<Successor | null> | undefined;
  private give_up_at: number | undefined;

  constructor(
    private readonly adapter: Pick<Adapter, 'ownerOf'>,
    private readonly fence: LinkFence,
    private readonly deps: SuccessorCheckDeps,
  ) {}

  /**
   * Waits until the successor has opened all of the link, at most for the length of a handover, or until a stopping
   * process reads no more: the successor has not received messages of a kind that it has not opened by then. A
   * successor that gives up earlier, or fails and opens again, receives nothing for a while, whatever it had opened
   * before. While the database does not answer, nothing is decided.
   *
   * @param ending aborted when this process retries nothing more
   * @throws the reason of `ending`, when the database does not answer then
   */
  async ownerOf(received: Received, ending: AbortSignal): Promise<Owner> {
    const { adapter, fence } = this;
    const { timings, stopsReadingAt = () => Infinity } = this.deps;
    if (!adapter.ownerOf) return 'successor';
    this.give_up_at ??= performance.now() + timings.handover_ms;
    for (let looks = 0; ;) {
      const found = await (this.looked ??= this.look());
      if (found === null) ending.throwIfAborted();
      else {
        const known = found.state ?? found.beginning;
        const late = looks >= LOOKS_TO_SETTLE && performance.now() >= Math.min(this.give_up_at, stopsReadingAt());
        if (found.state !== undefined || late)
          return known === undefined ? 'former' : adapter.ownerOf(received, known, fence.token);
        looks += 1;
      }
      await pause(timings.look_ms);
    }
  }

  /**
   * Reads the successor's report. Cached until the next check is due; for good once the successor has opened
   * everything. Null without an answer of the database.
   */
  private async look(): Promise<Successor | null> {
    const found = await this.deps.leases.successor(this.fence).catch(() => null);
    if (found?.state === undefined) void pause(this.deps.timings.look_ms).then(() => (this.looked = undefined));
    return found;
  }
}
