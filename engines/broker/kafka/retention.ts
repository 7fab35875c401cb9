import { ConfigResourceTypes } from 'kafkajs';
import { type KafkaClient, typeOf } from './client';

const POLICY = 'cleanup.policy';
/** With the policy `delete`, records beyond either limit are dropped; -1 is no limit. */
const LIMITS = ['retention.ms', 'retention.bytes'];

/**
 * Topics of Lumio are the log of record, and a topic that somebody else made may have the brokers' default of seven
 * days.
 * @throws Error in one line that names topic and setting when the brokers drop records of one of these topics by
 * themselves, or do not let us see
 */
export async function refuseLimited(client: KafkaClient, topics: readonly string[]): Promise<void> {
  if (topics.length === 0) return;
  const configNames = [POLICY, ...LIMITS];
  const described = await client.ask('looking at how long topics are kept', async (admin) => {
    try {
      return await admin.describeConfigs({
        includeSynonyms: false,
        resources: topics.map((name) => ({ type: ConfigResourceTypes.TOPIC, name, configNames })),
      });
    } catch (error) {
      if (typeOf(error) !== 'TOPIC_AUTHORIZATION_FAILED') throw error;
      const names = topics.join(', ');
      throw new Error(`the login may not see how long topics are kept: allow DescribeConfigs on ${names}`, {
        cause: error,
      });
    }
  });
  for (const { resourceName, configEntries } of described.resources) {
    const value = new Map(configEntries.map((entry) => [entry.configName, entry.configValue]));
    const found = limitOf((name) => value.get(name) ?? '');
    if (found) {
      throw new Error(
        `topic ${resourceName} does not keep its records: ${found.name} is ${found.is}, and must be ${found.wanted}`,
      );
    }
  }
}

function limitOf(value: (name: string) => string): { name: string; is: string; wanted: string } | undefined {
  const policies = value(POLICY).split(',');
  if (policies.includes('compact')) return { name: POLICY, is: value(POLICY), wanted: 'delete' };
  if (!policies.includes('delete')) return undefined;
  const name = LIMITS.find((limit) => value(limit) !== '-1');
  return name === undefined ? undefined : { name, is: value(name), wanted: '-1' };
}
