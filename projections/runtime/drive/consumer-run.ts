import { pause } from '../../../lib/async/signal';
import type { Checkpoint } from '../checkpoint/checkpoints';

/** Source of one run: a broker consumer or an event subscription. */
export interface Subscription {
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** Run of a projection's consumer: from the stored checkpoint until it ends or fails. */
export class ConsumerRun {
  /** True once another run may have begun: batches of this run must not be committed any more. */
  left = false;
  private counted: ReadonlyMap<number, number> = new Map();
  private readonly cut = new AbortController();
  private readonly end: AbortSignal;

  constructor(
    /** Aborted when this process should no longer drive the projection. */
    private readonly ends: AbortSignal,
  ) {
    this.end = AbortSignal.any([ends, this.cut.signal]);
  }

  /** Erasures per partition as last read. Never changed in place: a batch keeps those from before its decoding. */
  get erasures(): ReadonlyMap<number, number> {
    return this.counted;
  }

  learnErasures(checkpoints: Iterable<Checkpoint>): void {
    const counted = new Map(this.counted);
    for (const { partition, erasures } of checkpoints) counted.set(partition, erasures);
    this.counted = counted;
  }

  /** True when this process should no longer drive the projection. */
  get over(): boolean {
    return this.ends.aborted;
  }

  /** Makes the run fail; only the first call counts. */
  interrupt(error: unknown): void {
    this.cut.abort(error instanceof Error ? error : new Error(String(error)));
  }

  /**
   * Waits until this process should no longer drive the projection, or `done`.
   * @throws the error of {@link interrupt}, or of `done`
   */
  async lasts(done: Promise<void>): Promise<void> {
    await Promise.race([done, pause(Infinity, this.end)]);
    this.cut.signal.throwIfAborted();
  }

  /**
   * Returns the result of `work`, unless the run is interrupted: a hanging batch must not block the consumer, and with
   * it the partitions, for ever.
   * @throws the error of {@link interrupt}, or of the work; a later outcome of the work is ignored
   */
  during<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.cut;
    return new Promise((resolve, reject) => {
      const interrupted = () => reject(signal.reason as Error);
      if (signal.aborted) interrupted();
      signal.addEventListener('abort', interrupted);
      void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', interrupted));
    });
  }
}
