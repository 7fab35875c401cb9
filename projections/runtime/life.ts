import { pause } from '../../kernel/signal';

/** What is driven in one life: a broker consumer or an event subscription. */
export interface Drive {
  readonly done: Promise<void>;
  stop(): Promise<void>;
}

/** One life of a projection's consumer: from the stored checkpoint on, until it ends or fails. */
export class Life {
  /** Another life may have begun: what this one has in hand must not be committed any more. */
  left = false;
  private readonly cut = new AbortController();
  private readonly end: AbortSignal;

  constructor(
    /** Aborted when this process should no longer drive the projection. */
    private readonly ends: AbortSignal,
  ) {
    this.end = AbortSignal.any([ends, this.cut.signal]);
  }

  /** This process should no longer drive it. */
  get over(): boolean {
    return this.ends.aborted;
  }

  /** Makes the life fail; only the first time counts. */
  interrupt(error: unknown): void {
    this.cut.abort(error instanceof Error ? error : new Error(String(error)));
  }

  /**
   * Until this process should no longer drive it, or `done`.
   * @throws what the life was interrupted by, or `done`
   */
  async lasts(done: Promise<void>): Promise<void> {
    await Promise.race([done, pause(Infinity, this.end)]);
    this.cut.signal.throwIfAborted();
  }

  /**
   * What `work` gives. A batch that hangs must not keep the consumer, and with it the partitions, for ever.
   * @throws what the life was interrupted by, or the work; the late outcome of the work is nobody's then
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
