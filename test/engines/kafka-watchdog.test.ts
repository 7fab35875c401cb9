import { createKafkaBroker } from '../../engines/broker/kafka/broker';
import type { Broker, Consumer, Offsets } from '../../engines/broker/port';
import type { Metrics } from '../../engines/metrics/port';
import { until } from '../contracts/broker';
import { type Kafka, startKafka } from './support/kafka';
import { freePort } from './support/process';
import { type ProxyLink, startToxiproxy, type Toxiproxy } from './support/toxiproxy';
import { slowness } from '../support/patience';

const SECONDS = 1_000;
/** Below every time-out of kafkajs, so that only the watchdog can be what ends the consumer. */
const STALL_MS = 3 * SECONDS;

/** The watchdog by itself: it goes by fetches and batches, and starts the consumer again within its time. */
describe("kafka: the consumer's watchdog", () => {
  let kafka: Kafka;
  let proxy: Toxiproxy;
  let link: ProxyLink;
  let broker: Broker;
  const reasons: string[] = [];

  beforeAll(async () => {
    const [port, near] = [await freePort(), await freePort()];
    kafka = await startKafka({ port, advertised_port: near });
    proxy = await startToxiproxy();
    link = await proxy.link(port, near);
    const counter: Metrics['counter'] = (name) => ({
      inc(_by, labels) {
        if (name === 'lumio_kafka_consumer_restarts_total') reasons.push(String(labels?.reason));
      },
    });
    const metrics = { counter } as Partial<Metrics> as Metrics;
    broker = await createKafkaBroker({ url: kafka.url, metrics, times: { stall_ms: STALL_MS } });
  });
  afterEach(() => link.heal());
  afterAll(async () => {
    await broker?.close();
    await kafka?.kill();
    await proxy?.kill();
  });

  async function follow(topic: string): Promise<{ tail: Consumer; seen: string[] }> {
    await broker.ensureTopics([topic], 2);
    reasons.length = 0;
    const seen: string[] = [];
    const checkpoint: Offsets = new Map();
    const tail = broker.consume({
      topic,
      group: topic,
      start: async (partitions) => new Map(partitions.map((p) => [p, checkpoint.get(p) ?? 0])),
      async onBatch({ records, progress }) {
        for (const [partition, { to }] of progress) checkpoint.set(partition, to);
        for (const { value } of records) seen.push(value.toString());
      },
    });
    await publish(topic, 'before');
    await until(() => seen.includes('before'), 60 * SECONDS);
    return { tail, seen };
  }
  /** As a webhook's sender does: until it is acknowledged. */
  const publish = (topic: string, value: string) =>
    until(
      () =>
        broker.publish(topic, [{ key: 'k', value: Buffer.from(value) }]).then(
          () => true,
          () => false,
        ),
      60 * SECONDS,
    );

  /** Milliseconds from now until the watchdog ends a consumer. */
  async function fired(): Promise<number> {
    const from = performance.now();
    await until(() => reasons.includes('Stalled'));
    return performance.now() - from;
  }

  test('nothing to read is no stall', async () => {
    const { tail, seen } = await follow('idle');
    await new Promise((resume) => setTimeout(resume, 3 * STALL_MS));
    // The group's coordinator may answer with an error of its own while it starts; that is no stall.
    expect(reasons).not.toContain('Stalled');
    await publish('idle', 'after');
    await until(() => seen.includes('after'), 60 * SECONDS);
    await tail.stop();
  });

  test('row 9: answers held back: ended as stalled within its time, and read on when they come again', async () => {
    const { tail, seen } = await follow('held');
    const heal = await link.toxic('timeout', 'downstream', { timeout: 0 });
    const after_ms = await fired();
    // The time itself, a look every quarter of it, and some for a busy machine; kafkajs would have noticed after 10 s.
    expect(after_ms).toBeLessThan(STALL_MS * 1.25 + 5 * SECONDS * slowness());
    await heal();
    await publish('held', 'after');
    await until(() => seen.includes('after'), 60 * SECONDS);
    await tail.stop();
    expect(new Set(seen)).toEqual(new Set(['before', 'after']));
  });

  test('row 9: a broker frozen beyond its time: ended as stalled, and read on when it thaws', async () => {
    const { tail, seen } = await follow('frozen');
    process.kill(kafka.pid, 'SIGSTOP');
    try {
      expect(await fired()).toBeLessThan(STALL_MS * 1.25 + 5 * SECONDS * slowness());
    } finally {
      process.kill(kafka.pid, 'SIGCONT');
    }
    await publish('frozen', 'after');
    await until(() => seen.includes('after'), 60 * SECONDS);
    await tail.stop();
    expect(new Set(seen)).toEqual(new Set(['before', 'after']));
  });
});
