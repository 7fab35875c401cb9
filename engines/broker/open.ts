import type pg from 'pg';
import type { Settings } from '../../kernel/settings/settings';
import { SERVICE } from '../../domain/common/vendors';
import type { Broker } from './port';
import { createPostgresBroker } from './postgres/broker';
import type { Logger } from '../log/port';
import type { Metrics } from '../metrics/port';
import type { ProcessSession } from '../postgres/process-session';
import type { Wakeups } from '../wakeups/port';
import { kafkaConnection, REFUSED_BY } from './kafka/connection';
import { SettingsError } from '../../kernel/settings/error';

export interface BrokerDeps {
  settings: Settings;
  /** Whether this process serves. A command repeats no warning about topics with few copies. */
  serving: boolean;
  pool: pg.Pool;
  session: ProcessSession;
  wakeups: Wakeups;
  /** Id of the database, which the embedded log is named by. */
  installation: string;
  log: Logger;
  metrics: Metrics;
}

/**
 * The broker that the settings choose. @throws SettingsError for settings that fit none, Error when the cluster cannot
 * be used
 */
export async function openBroker(deps: BrokerDeps): Promise<Broker> {
  const { settings, pool, session, wakeups, installation, log } = deps;
  if (settings.broker.url === 'postgres')
    return createPostgresBroker({ pool, session, wakeups, id: `postgres:${installation}`, log });
  return openKafka(deps);
}

/** The Kafka of the settings. @throws as {@link openBroker} */
export async function openKafka({
  settings,
  serving,
  log,
  metrics,
}: Pick<BrokerDeps, 'settings' | 'serving' | 'log' | 'metrics'>): Promise<Broker> {
  const { url, replication } = settings.broker;
  // Loaded when it is used: the embedded engines must not pay for it.
  const { kafkaAddresses, refusalOf } = await import('./kafka/client.js');
  try {
    kafkaAddresses(url);
  } catch {
    throw new SettingsError(
      'LUMIO_BROKER__URL: must be postgres, or kafka://host:port, several hosts joined by commas',
    );
  }
  const connection = kafkaConnection(settings.broker);
  const { createKafkaBroker } = await import('./kafka/broker.js');
  try {
    return await createKafkaBroker({
      url,
      replication,
      production: serving && settings.env === 'production',
      ...connection,
      client_id: SERVICE,
      log,
      metrics,
    });
  } catch (error) {
    const refusal = refusalOf(error);
    throw new Error(`${refusal ? REFUSED_BY[refusal] : 'LUMIO_BROKER__URL'}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
