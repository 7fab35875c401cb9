export interface StallWatchOptions {
  /** Time without a sign of life after which the consumer counts as stalled. */
  stall_ms: number;
  /** Whether the consumer waits for its caller; no progress is expected meanwhile. */
  busy(): boolean;
  fetching(): boolean;
  /** Whether the log has records that the consumer has not received; null when that is unknown. */
  behind(): Promise<boolean | null>;
  onStall(error: Error): void;
  /** Called when `behind` failed. */
  onBlind(error: Error): void;
}

/** Judges a consumer by its progress, not by its heartbeats; one without progress is restarted. */
export class StallWatch {
  private progressed_at = 0;
  private turned_at = 0;
  private answered_at = 0;
  private looking = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly options: StallWatchOptions) {}

  start(): void {
    this.turned();
    this.progressed();
    this.timer = setInterval(() => this.look(), Math.min(this.options.stall_ms / 4, 5_000));
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** The loop of the group's member, which sends the heartbeats, has completed a round. */
  turned(): void {
    this.turned_at = performance.now();
  }

  /** A fetch was answered, with records or without. */
  answered(): void {
    this.answered_at = performance.now();
  }

  /** A batch was processed. */
  progressed(): void {
    this.progressed_at = performance.now();
  }

  private look(): void {
    const { options } = this;
    const { stall_ms } = options;
    const now = performance.now();
    if (options.busy()) this.answered_at = this.progressed_at = now;
    if (now - this.turned_at > stall_ms) return this.stalled('no turn of the member');
    if (options.fetching() && now - this.answered_at > stall_ms) return this.stalled('no fetch');
    if (this.looking || now - this.progressed_at < stall_ms) return;
    this.looking = true;
    options
      .behind()
      .then((behind) => {
        if (behind === null || this.progressed_at > now) return;
        if (behind) this.stalled('no record although there are some');
        else this.progressed();
      })
      .catch((error: Error) => options.onBlind(error))
      .finally(() => (this.looking = false));
  }

  private stalled(what: string): void {
    const error = new Error(`${what} for ${this.options.stall_ms} ms`);
    error.name = 'Stalled';
    this.options.onStall(error);
  }
}
