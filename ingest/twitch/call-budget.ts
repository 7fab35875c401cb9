import { Slots } from '../../lib/async/slots';
import { pause } from '../../lib/async/signal';

/** Longest wait for the bucket, which is full again after a minute; a later moment has another reason, or clock. */
export const LONGEST_LIMIT_MS = 65_000;
/** Shortest pause after a 429: the moment that Twitch names may be over by our clock. */
const SHORTEST_LIMIT_MS = 100;

export interface CallBudgetOptions {
  /** Concurrent calls. */
  at_once: number;
  /** Calls of the bucket that are left to others. */
  reserve: number;
}

/** Shares a bucket of Twitch's calls among callers: concurrent calls are bounded, and all wait for an empty bucket. */
export class CallBudget {
  private readonly slots: Slots;
  private empty_until = 0;

  constructor(private readonly options: CallBudgetOptions) {
    this.slots = new Slots(options.at_once);
  }

  /** Whether calls wait for the bucket to fill again. */
  get isEmpty(): boolean {
    return this.empty_until > Date.now();
  }

  /** Stops calls until about this time, by Twitch's clock; Unix milliseconds. */
  limited(until: number): void {
    const now = Date.now();
    const bounded = Math.min(Math.max(until, now + SHORTEST_LIMIT_MS), now + LONGEST_LIMIT_MS);
    this.empty_until = Math.max(this.empty_until, bounded);
  }

  /** Takes Twitch's state of the bucket: the calls left, and when it is full again (Unix milliseconds). */
  note({ calls, full_at }: { calls: number; full_at: number }): void {
    if (calls < this.options.reserve) this.limited(full_at);
  }

  use<T>(signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    return this.slots.use(async () => {
      while (this.isEmpty && !signal.aborted)
        await pause((this.empty_until - Date.now()) * (1 + Math.random() / 4), signal);
      signal.throwIfAborted();
      return call();
    });
  }
}
