export interface StallWatchOptions {
  /** Without a sign of life for so long it stalls. */
  stall_ms: number;
  /** Somebody else has the next step: nothing is expected meanwhile. */
  busy(): boolean;
  fetching(): boolean;
  /** Whether there is something that it should have got; null where that cannot be said. */
  behind(): Promise<boolean | null>;
  onStall(error: Error): void;
  /** It could not be asked. */
  onBlind(error: Error): void;
}

/** Judges a consumer by its progress, not by its heartbeats: one that only looks alive is started again. */
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

  /** The group's member went round once: heartbeats are looked after. */
  turned(): void {
    this.turned_at = performance.now();
  }

  /** A fetch was answered, with records or without. */
  answered(): void {
    this.answered_at = performance.now();
  }

  /** A batch was worked off. */
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
