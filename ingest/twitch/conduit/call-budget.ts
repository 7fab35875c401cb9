import { Slots } from '../../../lib/async/slots';
import { pause } from '../../../lib/async/signal';

/** Concurrent calls of one process; all processes share the app's bucket of some 800 calls a minute. */
const AT_ONCE = 4;
/** Calls reserved for shards, whose assignment must not wait for subscriptions. */
const RESERVE = 100;

/** Shares the app's bucket of calls among the channels of this process. */
export class CallBudget {
  private readonly slots = new Slots(AT_ONCE);
  private empty_until = 0;

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
    if (calls < RESERVE) this.limited(full_at);
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
