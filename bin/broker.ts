import type { SASLOptions } from 'kafkajs';
import type pg from 'pg';
import type { Settings } from '../access/settings';
import { SERVICE } from '../domain/vendors';
import type { Broker } from '../engines/broker/port';
import { createPostgresBroker } from '../engines/broker/postgres';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { Wakeups } from '../engines/wakeups/port';
import { SettingsError } from './settings';

export interface BrokerDeps {
  settings: Settings;
  pool: pg.Pool;
  wakeups: Wakeups;
  /** Id of the database, which the embedded log is named by. */
  installation: string;
  log: Logger;
  metrics: Metrics;
}

/** The broker that the settings choose. @throws SettingsError for settings that fit none, Error when the cluster cannot be used */
export async function openBroker(deps: BrokerDeps): Promise<Broker> {
  const { settings, pool, wakeups, installation, log, metrics } = deps;
  const { url, replication, tls, sasl_mechanism, sasl_username, sasl_password } = settings.broker;
  if (url === 'postgres') return createPostgresBroker({ pool, wakeups, id: `postgres:${installation}`, log });
  // Loaded when it is used: the embedded engines must not pay for it.
  const { kafkaAddresses } = await import('../engines/broker/kafka-client.js');
  try {
    kafkaAddresses(url);
  } catch {
    throw new SettingsError(
      'LUMIO_BROKER__URL: must be postgres, or kafka://host:port, several hosts joined by commas',
    );
  }
  if (sasl_mechanism !== undefined && (sasl_username === undefined || sasl_password === undefined)) {
    throw new SettingsError(
      'LUMIO_BROKER__SASL_USERNAME and LUMIO_BROKER__SASL_PASSWORD: must be set with LUMIO_BROKER__SASL_MECHANISM',
    );
  }
  const { createKafkaBroker } = await import('../engines/broker/kafka.js');
  try {
    return await createKafkaBroker({
      url,
      replication,
      tls,
      ...(sasl_mechanism && {
        sasl: { mechanism: sasl_mechanism, username: sasl_username!, password: sasl_password! } as SASLOptions,
      }),
      client_id: SERVICE,
      log,
      metrics,
    });
  } catch (error) {
    throw new Error(`LUMIO_BROKER__URL: ${(error as Error).message}`, { cause: error });
  }
}
