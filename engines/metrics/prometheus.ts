import * as client from 'prom-client';
import { Histogram } from './histogram';
import type { Counter, Gauge, Histogram as HistogramPort, Metrics } from './port';
import { SeriesOf } from './series';

export interface PrometheusMetrics extends Metrics {
  /** The text exposition format, version 0.0.4. */
  render(): Promise<string>;
  readonly content_type: string;
  /** Runs `collect` just before each rendering, for gauges that are read rather than kept. */
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
    // Counts here and passes the sums to the library when it renders, because it makes a text of the labels for each
    // call.
    counter: (name, help, labelNames = []): Counter =>
      madeOnce(name, () => {
        const series = new SeriesOf(labelNames, () => 0);
        const collect = () => {
          for (const one of series.all) {
            counter.inc(one.labels, one.value);
            one.value = 0;
          }
        };
        const counter = new client.Counter({ name, help, labelNames, registers: [registry], collect });
        return {
          inc(amount = 1, of = {}) {
            if (!Number.isFinite(amount) || amount < 0) throw new TypeError(`${name} cannot count ${amount}`);
            series.of(of).value += amount;
          },
        };
      }),
    gauge: (name, help, labelNames = []): Gauge =>
      madeOnce(name, () => {
        const series = new SeriesOf(labelNames, () => 0);
        const collect = () => {
          for (const { labels, value } of series.all) gauge.set(labels, value);
        };
        const gauge = new client.Gauge({ name, help, labelNames, registers: [registry], collect });
        return { set: (value, of = {}) => void (series.of(of).value = value) };
      }),
    histogram: (name, help, buckets, labelNames = []): HistogramPort =>
      madeOnce(name, () => {
        const histogram = new Histogram(name, help, buckets, labelNames);
        // The registry only reads the lines.
        registry.registerMetric(histogram as unknown as client.Histogram);
        return { observe: (value, of = {}) => histogram.observe(value, of) };
      }),
  };
}
