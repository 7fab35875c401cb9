/** Calls back once it has run for a time; pauses do not count. */
export class Stopwatch {
  private timer: NodeJS.Timeout | undefined;
  private began = 0;
  private is_stopped = false;

  constructor(
    private left_ms: number,
    private readonly onOver: () => void,
  ) {}

  run(): void {
    if (this.is_stopped || this.timer !== undefined) return;
    this.began = performance.now();
    this.timer = setTimeout(this.onOver, Math.max(0, this.left_ms));
  }

  pause(): void {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.left_ms -= performance.now() - this.began;
  }

  /** Ends the watch, which then never calls back. */
  stop(): void {
    this.pause();
    this.is_stopped = true;
  }
}
