import { readFileSync } from 'node:fs';
import type { SASLOptions } from 'kafkajs';
import type pg from 'pg';
import type { Settings } from '../access/settings';
import { SERVICE } from '../domain/vendors';
import type { Broker } from '../engines/broker/port';
import { createPostgresBroker } from '../engines/broker/postgres';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { ProcessSession } from '../engines/postgres/process-session';
import type { Wakeups } from '../engines/wakeups/port';
import { SettingsError } from './settings';

export interface BrokerDeps {
  settings: Settings;
  pool: pg.Pool;
  session: ProcessSession;
  wakeups: Wakeups;
  /** Id of the database, which the embedded log is named by. */
  installation: string;
  log: Logger;
  metrics: Metrics;
}

/** The broker that the settings choose. @throws SettingsError for settings that fit none, Error when the cluster cannot be used */
export async function openBroker(deps: BrokerDeps): Promise<Broker> {
  const { settings, pool, session, wakeups, installation, log } = deps;
  if (settings.broker.url === 'postgres')
    return createPostgresBroker({ pool, session, wakeups, id: `postgres:${installation}`, log });
  return openKafka(deps);
}

/** The Kafka of the settings. @throws as {@link openBroker} */
export async function openKafka({
  settings,
  log,
  metrics,
}: Pick<BrokerDeps, 'settings' | 'log' | 'metrics'>): Promise<Broker> {
  const { url, replication, tls, tls_ca, sasl_mechanism, sasl_username, sasl_password } = settings.broker;
  // Loaded when it is used: the embedded engines must not pay for it.
  const { kafkaAddresses, refusalOf } = await import('../engines/broker/kafka-client.js');
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
  if (tls_ca !== undefined && !tls) {
    throw new SettingsError('LUMIO_BROKER__TLS_CA (broker.tls_ca): has no meaning without LUMIO_BROKER__TLS=true');
  }
  const { createKafkaBroker } = await import('../engines/broker/kafka.js');
  try {
    return await createKafkaBroker({
      url,
      replication,
      tls: tls && tls_ca !== undefined ? { ca: certificates(tls_ca) } : tls,
      ...(sasl_mechanism && {
        sasl: { mechanism: sasl_mechanism, username: sasl_username!, password: sasl_password! } as SASLOptions,
      }),
      client_id: SERVICE,
      log,
      metrics,
    });
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    const refusal = refusalOf(error);
    throw new Error(`${refusal ? KEYS[refusal] : 'LUMIO_BROKER__URL'}: ${(error as Error).message}`, { cause: error });
  }
}

/** Settings to look at first, by what was refused. */
const KEYS = {
  login: 'LUMIO_BROKER__SASL_USERNAME, LUMIO_BROKER__SASL_PASSWORD',
  certificate: 'LUMIO_BROKER__TLS_CA',
} as const;

/** @throws SettingsError when it is neither PEM nor a file that holds it */
function certificates(pem_or_path: string): string {
  const is_pem = (text: string) => text.includes('-----BEGIN CERTIFICATE-----');
  if (is_pem(pem_or_path)) return pem_or_path;
  let text: string;
  try {
    text = readFileSync(pem_or_path, 'utf8');
  } catch (error) {
    throw new SettingsError(
      `LUMIO_BROKER__TLS_CA (broker.tls_ca): must be PEM or the path of a PEM file (${(error as Error).message})`,
    );
  }
  if (!is_pem(text))
    throw new SettingsError(`LUMIO_BROKER__TLS_CA (broker.tls_ca): ${pem_or_path} holds no PEM certificate`);
  return text;
}
