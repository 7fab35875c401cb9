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

/** Where rooms register their series. Asking for a name again returns the same series. */
export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  gauge(name: string, help: string, labels?: readonly string[]): Gauge;
  /** `buckets` in the unit that the name ends in (`_seconds`, `_bytes`, …). */
  histogram(name: string, help: string, buckets: readonly number[], labels?: readonly string[]): Histogram;
}
