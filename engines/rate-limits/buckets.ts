/** Buckets of one kind that are remembered at a time: some 20 MB, which made-up addresses could fill. */
const MOST = 100_000;
/** How often those that say nothing any more are forgotten. */
const SWEEP_MS = 5_000;

/**
 * Values of buckets, each forgotten soon after it says nothing any more: ten thousand callers that came at once leave
 * nothing behind a minute later. Times are of the monotonic clock. It keeps no process alive.
 */
export class Buckets<Value> {
  private readonly values = new Map<string, Value>();
  private timer: NodeJS.Timeout | null = null;

  /** `isOver` tells whether a value says nothing any more; `most` is how many are remembered at a time. */
  constructor(
    private readonly isOver: (value: Value, now: number) => boolean,
    private readonly most = MOST,
  ) {}

  get size(): number {
    return this.values.size;
  }

  get(bucket: string): Value | undefined {
    return this.values.get(bucket);
  }

  set(bucket: string, value: Value): void {
    this.values.set(bucket, value);
    if (this.values.size > this.most) this.makeRoom();
    this.timer ??= setTimeout(() => this.sweep(), SWEEP_MS).unref();
  }

  clear(): void {
    this.values.clear();
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private sweep(): void {
    this.timer = null;
    this.forgetOver();
    if (this.values.size > 0) this.timer = setTimeout(() => this.sweep(), SWEEP_MS).unref();
  }

  private forgetOver(): void {
    const now = performance.now();
    for (const [bucket, value] of this.values) if (this.isOver(value, now)) this.values.delete(bucket);
  }

  /** The half that came first goes in one pass: one at a time would look through those gone before it each time. */
  private makeRoom(): void {
    this.forgetOver();
    let too_many = this.values.size <= this.most ? 0 : Math.ceil(this.most / 2);
    for (const bucket of this.values.keys()) {
      if (too_many-- <= 0) return;
      this.values.delete(bucket);
    }
  }
}
