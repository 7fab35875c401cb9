import { randomUUID } from 'node:crypto';
import { TOPICS } from '../../../domain/common/records';
import { createKafkaBroker } from '../../../engines/broker/kafka/broker';
import type { Broker } from '../../../engines/broker/port';
import { createRecordLog } from '../../../engines/records/log';
import type { TestDatabase } from '../../support/database';
import { type Engines, engines } from '../../support/projections';
import type { Kafka } from './kafka';

/** The broker, with topics and groups of its own. */
function apart(broker: Broker): Broker {
  const prefix = `${randomUUID()}.`;
  return {
    id: broker.id,
    ensureTopics: (topics, ...how) =>
      broker.ensureTopics(
        topics.map((topic) => prefix + topic),
        ...how,
      ),
    publish: (topic, records) => broker.publish(prefix + topic, records),
    consume: (options) => broker.consume({ ...options, topic: prefix + options.topic, group: prefix + options.group }),
    async *read(topic, ...range) {
      for await (const records of broker.read(prefix + topic, ...range))
        yield records.map((one) => ({ ...one, topic }));
    },
    bounds: (topic) => broker.bounds(prefix + topic),
    trim: (topic, ...place) => broker.trim(prefix + topic, ...place),
    close: () => broker.close(),
  };
}

/** The embedded engines with the records in Kafka, in topics that nobody else has. */
export async function kafkaEngines(kafka: Kafka, t: TestDatabase): Promise<Engines> {
  const base = await engines(t.db);
  const broker = apart(await createKafkaBroker({ url: kafka.url }));
  await broker.ensureTopics(Object.values(TOPICS), 4);
  const close = async () => {
    await broker.close();
    await base.close();
  };
  return { ...base, broker, records: createRecordLog({ broker, subject_keys: base.subject_keys }), close };
}
