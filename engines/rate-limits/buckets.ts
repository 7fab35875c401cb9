/** Most stored buckets of one kind: some 20 MB, which made-up addresses could fill. */
const MOST = 100_000;
/** Interval at which expired values are deleted. */
const SWEEP_MS = 5_000;

/**
 * Values of buckets, each deleted soon after it expires, so that ten thousand simultaneous callers occupy no memory a
 * minute later. Times are of the monotonic clock. The timer keeps no process alive.
 */
export class Buckets<Value> {
  private readonly values = new Map<string, Value>();
  private timer: NodeJS.Timeout | null = null;

  /** `isOver` returns whether a value has expired; `most` bounds the number of stored values. */
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
    if (this.values.size > this.most) this.ensureCapacity();
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

  /** Deletes the older half in one pass: one at a time, each deletion would scan the entries deleted before it. */
  private ensureCapacity(): void {
    this.forgetOver();
    let too_many = this.values.size <= this.most ? 0 : Math.ceil(this.most / 2);
    for (const bucket of this.values.keys()) {
      if (too_many-- <= 0) return;
      this.values.delete(bucket);
    }
  }
}
