export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  inc(amount?: number, labels?: Labels): void;
}
export interface Gauge {
  set(value: number, labels?: Labels): void;
}
export interface Histogram {
  observe(value: number, labels?: Labels): void;
}

/** Registry of the rooms' series. A repeated name returns the same series. */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge;
  /** `buckets` are in the unit at the end of the name (`_seconds`, `_bytes`, …). */
  histogram(name: string, help: string, buckets: readonly number[], labels?: readonly string[]): Histogram;
}
