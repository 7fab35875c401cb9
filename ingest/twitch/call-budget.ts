import { Slots } from '../../lib/async/slots';
import { pause } from '../../lib/async/signal';

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

  /** Stops calls until this time; Unix milliseconds. */
  limited(until: number): void {
    this.empty_until = Math.max(this.empty_until, until);
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
