import { randomUUID } from 'node:crypto';
import { TOPICS } from '../../domain/records';
import { createKafkaBroker } from '../../engines/broker/kafka';
import type { Broker } from '../../engines/broker/port';
import { createRecordLog } from '../../engines/records/log';
import { topicRelayContract } from '../contracts/topic-relay';
import { engines } from '../support/projections';
import { type Kafka, startKafka } from './support/kafka';

/** The broker, with topics and groups of its own. */
function apart(broker: Broker): Broker {
  const prefix = `${randomUUID()}.`;
  return {
    id: broker.id,
    ensureTopics: (topics, partitions) =>
      broker.ensureTopics(
        topics.map((topic) => prefix + topic),
        partitions,
      ),
    publish: (topic, records) => broker.publish(prefix + topic, records),
    consume: (options) => broker.consume({ ...options, topic: prefix + options.topic, group: prefix + options.group }),
    read: (topic, ...range) => broker.read(prefix + topic, ...range),
    bounds: (topic) => broker.bounds(prefix + topic),
    trim: (topic, ...place) => broker.trim(prefix + topic, ...place),
    close: () => broker.close(),
  };
}

describe('relays into Kafka', () => {
  let kafka: Kafka;
  beforeAll(async () => {
    kafka = await startKafka();
  }, 120_000);
  afterAll(() => kafka?.kill());

  topicRelayContract('kafka', async (t) => {
    const base = await engines(t.db);
    const broker = apart(await createKafkaBroker({ url: kafka.url }));
    await broker.ensureTopics(Object.values(TOPICS), 4);
    const close = async () => {
      await broker.close();
      await base.close();
    };
    return { ...base, broker, records: createRecordLog({ broker, subject_keys: base.subject_keys }), close };
  });
});
