import { type Admin, Kafka as KafkaJs, logLevel } from 'kafkajs';
import { createKafkaBroker } from '../../engines/broker/kafka/broker';
import { kafkaAddresses } from '../../engines/broker/kafka/client';
import type { Broker, Offsets } from '../../engines/broker/port';
import { until } from '../contracts/broker';
import { dose } from '../faults/support/dose';
import { slowness } from '../support/patience';
import { type KafkaCluster, startKafka } from './support/kafka';

const SECONDS = 1_000;

/** Three brokers, each partition on all of them: one at a time dies without a word. */
describe('a kafka cluster', () => {
  let cluster: KafkaCluster;
  let broker: Broker;
  let admin: Admin;

  beforeAll(async () => {
    // One partition of group offsets: its leader is the coordinator of every group.
    const settings = { 'offsets.topic.num.partitions': '1' };
    cluster = await startKafka({ nodes: 3, settings });
    broker = await createKafkaBroker({ url: cluster.url, replication: 3 });
    admin = new KafkaJs({ brokers: kafkaAddresses(cluster.url), logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
  });
  afterAll(async () => {
    await admin?.disconnect();
    await broker?.close();
    await cluster?.kill();
  });

  const partitionsOf = async (topic: string) =>
    (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0]!.partitions;
  const leaderOf = async (topic: string, partition: number) =>
    (await partitionsOf(topic)).find(({ partitionId }) => partitionId === partition)!.leader;
  /** All copies on all three nodes again: only then may the next one die. */
  const whole = (topic: string) =>
    until(async () => {
      const partitions = await partitionsOf(topic).catch(() => []);
      return partitions.length > 0 && partitions.every(({ isr, leader }) => isr.length === 3 && leader >= 1);
    });

  test(
    'row 7: leaders and the coordinator killed in a flood: nothing acknowledged is lost, the consumer reads on by itself',
    async () => {
      await broker.ensureTopics(['moved'], 6);
      for (const { replicas } of await partitionsOf('moved')) expect(replicas).toHaveLength(3);
      const checkpoint: Offsets = new Map();
      const seen: string[] = [];
      let ended = false;
      const tail = broker.consume({
        topic: 'moved',
        group: 'moved',
        start: async (partitions) => new Map(partitions.map((p) => [p, checkpoint.get(p) ?? 0])),
        async onBatch({ records, progress }) {
          for (const [partition, { from, to }] of progress) {
            if ((checkpoint.get(partition) ?? 0) !== from) continue;
            checkpoint.set(partition, to);
            for (const r of records) if (r.partition === partition) seen.push(r.value.toString());
          }
        },
      });
      const over = () => void (ended = true);
      tail.done.then(over, over);

      const acked: string[] = [];
      let flooding = true;
      const publishers = Array.from({ length: 8 }, async (_, publisher) => {
        for (let n = 0; flooding; n += 1) {
          const value = `${publisher}:${n}`;
          try {
            await broker.publish('moved', [{ key: `k${publisher}`, value: Buffer.from(value) }]);
            acked.push(value);
          } catch {
            await new Promise((resume) => setTimeout(resume, 50)); // never acknowledged: owed nothing
          }
        }
      });
      const flow = async () => {
        const [stored, read] = [acked.length, seen.length];
        await until(() => acked.length > stored + 200 && seen.length > read + 200, 60 * SECONDS);
      };
      await flow();
      await whole('moved');

      let [stored_again_ms, read_again_ms] = [0, 0];
      for (let left = dose(1, 8); left > 0; left -= 1) {
        const leader = await leaderOf('moved', 0);
        const first = cluster.nodes[leader - 1]!;
        await first.kill();
        const [killed_at, stored] = [performance.now(), acked.length];
        await until(() => acked.length > stored + 50, 60 * SECONDS);
        stored_again_ms = Math.max(stored_again_ms, performance.now() - killed_at);
        await flow();
        await until(async () => (await leaderOf('moved', 0).catch(() => leader)) !== leader, 30 * SECONDS);
        await first.restart();
        await Promise.all([whole('moved'), whole('__consumer_offsets')]);

        const coordinator = await leaderOf('__consumer_offsets', 0);
        const second = cluster.nodes[coordinator - 1]!;
        await second.kill();
        const [gone_at, read] = [performance.now(), seen.length];
        await until(() => seen.length > read + 50, 60 * SECONDS);
        read_again_ms = Math.max(read_again_ms, performance.now() - gone_at);
        await flow();
        await until(
          async () => (await leaderOf('__consumer_offsets', 0).catch(() => coordinator)) !== coordinator,
          30 * SECONDS,
        );
        if (left === 1) break;
        await second.restart();
        await Promise.all([whole('moved'), whole('__consumer_offsets')]);
      }

      flooding = false;
      await Promise.all(publishers);
      await until(() => {
        const there = new Set(seen);
        return acked.every((value) => there.has(value));
      });
      expect(ended).toBe(false);
      await tail.stop();

      // With a node away all the same: two copies are enough to read, and every place of the log had its effect once.
      const log: string[] = [];
      for (const [partition, { earliest }] of await broker.bounds('moved'))
        for await (const page of broker.read('moved', partition, earliest))
          for (const { value } of page) log.push(value.toString());
      expect([...seen].sort()).toEqual(log.sort());
      for (let publisher = 0; publisher < 8; publisher += 1) {
        const order = [...new Set(seen.filter((value) => value.startsWith(`${publisher}:`)))];
        const numbers = order.map((value) => Number(value.split(':')[1]));
        expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
      }
      // Seen on a busy machine: 6 s and 15 s (the broker's session, an election, the session of a member that could not
      // say goodbye).
      expect(Math.max(stored_again_ms, read_again_ms)).toBeLessThan(45 * SECONDS * slowness());
    },
    dose(360, 1500) * SECONDS,
  );
});
