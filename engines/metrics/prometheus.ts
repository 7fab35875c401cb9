import * as client from 'prom-client';
import type { Counter, Gauge, Histogram, Metrics } from './port';

export interface PrometheusMetrics extends Metrics {
  /** The text exposition format, version 0.0.4. */
  render(): Promise<string>;
  readonly content_type: string;
  /** Runs just before each rendering, for gauges that are read rather than kept. */
  beforeRender(collect: () => void): void;
}

/** Series of this process, each with `labels` as constant labels. Spec doc2 §4.2 "Health and metrics". */
export function createPrometheusMetrics(labels: Readonly<Record<string, string>>): PrometheusMetrics {
  const registry = new client.Registry();
  registry.setDefaultLabels(labels);
  client.collectDefaultMetrics({ register: registry });
  const series = new Map<string, unknown>();
  const collectors: (() => void)[] = [];
  const madeOnce = <T>(name: string, make: () => T): T => {
    if (!series.has(name)) series.set(name, make());
    return series.get(name) as T;
  };
  return {
    content_type: registry.contentType,
    async render() {
      for (const collect of collectors) collect();
      return registry.metrics();
    },
    beforeRender: (collect) => void collectors.push(collect),
    counter: (name, help, labelNames = []): Counter =>
      madeOnce(name, () => {
        const counter = new client.Counter({ name, help, labelNames, registers: [registry] });
        return { inc: (amount = 1, of = {}) => counter.inc(of, amount) };
      }),
    gauge: (name, help, labelNames = []): Gauge =>
      madeOnce(name, () => {
        const gauge = new client.Gauge({ name, help, labelNames, registers: [registry] });
        return { set: (value, of = {}) => gauge.set(of, value) };
      }),
    histogram: (name, help, buckets, labelNames = []): Histogram =>
      madeOnce(name, () => {
        const histogram = new client.Histogram({
          name,
          help,
          labelNames,
          buckets: [...buckets],
          registers: [registry],
        });
        return { observe: (value, of = {}) => histogram.observe(of, value) };
      }),
  };
}
