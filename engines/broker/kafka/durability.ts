import { ConfigResourceTypes } from 'kafkajs';
import type { Logger } from '../../log/port';
import type { KafkaClient } from './client';

const MIN_INSYNC = 'min.insync.replicas';
const UNCLEAN = 'unclean.leader.election.enable';

/** Copies of the log of record in production: one broker may be missing and two still acknowledge. */
const WANTED_COPIES = 3;
const WANTED_INSYNC = 2;

/**
 * Warns of topics that may lose records which were acknowledged: those of unclean elections, and in production those
 * with few copies or acknowledged by one. A warning and no refusal, because such topics served until now and a start
 * that is refused loses deliveries for certain.
 */
export async function warnOfWeakTopics(
  client: KafkaClient,
  topics: readonly string[],
  { log, production }: { log: Logger | undefined; production: boolean },
): Promise<void> {
  if (topics.length === 0 || log === undefined) return;
  const { resources } = await client.ask('looking at how safely topics are kept', (admin) =>
    admin.describeConfigs({
      includeSynonyms: false,
      resources: topics.map((name) => ({
        type: ConfigResourceTypes.TOPIC,
        name,
        configNames: [MIN_INSYNC, UNCLEAN],
      })),
    }),
  );
  const where = (name: string, weak: (value: string) => boolean) =>
    resources
      .filter(({ configEntries }) =>
        configEntries.some((entry) => entry.configName === name && weak(entry.configValue)),
      )
      .map(({ resourceName }) => resourceName)
      .sort();
  const warn = (weak: string[], setting: string, consequence: string) => {
    if (weak.length > 0) log.warn({ topics: weak, setting }, consequence);
  };
  warn(
    where(UNCLEAN, (value) => value === 'true'),
    `${UNCLEAN}=true`,
    'these topics lose acknowledged records when a broker that lacks them becomes leader: set it to false',
  );
  if (!production) return;
  warn(
    where(MIN_INSYNC, (value) => Number(value) < WANTED_INSYNC),
    `${MIN_INSYNC}<${WANTED_INSYNC}`,
    'records of these topics are acknowledged with one copy: set it to 2, on three copies',
  );
  const { topics: described } = await client.ask('counting copies of topics', (admin) =>
    admin.fetchTopicMetadata({ topics: [...topics] }),
  );
  const few = described.filter(({ partitions }) => partitions.some(({ replicas }) => replicas.length < WANTED_COPIES));
  warn(
    few.map(({ name }) => name).sort(),
    `replication factor<${WANTED_COPIES}`,
    'these topics have fewer than three copies; topics that Lumio makes have broker.replication',
  );
}
