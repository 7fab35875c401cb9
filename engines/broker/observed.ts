import type { Metrics } from '../metrics/port';
import type { Broker } from './port';

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Any broker, with its publishes measured. */
export function observedBroker(broker: Broker, metrics: Metrics): Broker {
  const seconds = metrics.histogram(
    'lumio_broker_publish_seconds',
    'From the call of a publish until it is durable or failed, by topic and outcome (stored, failed)',
    SECONDS,
    ['topic', 'outcome'],
  );
  const records_total = metrics.counter(
    'lumio_broker_records_published_total',
    'Records made durable by this process',
    ['topic'],
  );
  const waiting_gauge = metrics.gauge('lumio_broker_publishes_waiting', 'Publishes that wait for their outcome', [
    'topic',
  ]);
  const waiting = new Map<string, number>();
  const wait = (topic: string, by: number) => {
    const count = (waiting.get(topic) ?? 0) + by;
    waiting.set(topic, count);
    waiting_gauge.set(count, { topic });
  };
  return {
    id: broker.id,
    async publish(topic, records) {
      const started = performance.now();
      let outcome = 'failed';
      wait(topic, 1);
      try {
        const ends = await broker.publish(topic, records);
        outcome = 'stored';
        records_total.inc(records.length, { topic });
        return ends;
      } finally {
        wait(topic, -1);
        seconds.observe((performance.now() - started) / 1000, { topic, outcome });
      }
    },
    handsOver: (topic) => broker.handsOver?.(topic) ?? false,
    ensureTopics: (topics, partitions, options) => broker.ensureTopics(topics, partitions, options),
    consume: (options) => broker.consume(options),
    read: (topic, partition, from, to) => broker.read(topic, partition, from, to),
    bounds: (topic) => broker.bounds(topic),
    trim: (topic, partition, before) => broker.trim(topic, partition, before),
    close: () => broker.close(),
  };
}
