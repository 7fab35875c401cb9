import type { Settings } from '../../kernel/settings/settings';
import { deadLettersOf, TOPICS } from '../../domain/common/records';
import type { Logger } from '../log/port';
import { DEAD_LETTER_ID, DOMAIN_EVENT_ID, RELAYED_SCHEMAS } from './relayed';
import { OWN_IDS, type SchemaIds } from './schema-ids';
import { createSchemaRegistry } from './schema-registry';
import { SCHEMAS, WRITTEN_SCHEMA_ID } from './schemas';
import { SettingsError } from '../../kernel/settings/error';

/** Schemas of all topics. */
const WRITTEN = Object.values(TOPICS).flatMap((topic) => [
  { topic, schema_id: topic === TOPICS.domain_events ? DOMAIN_EVENT_ID : WRITTEN_SCHEMA_ID },
  { topic: deadLettersOf(topic), schema_id: DEAD_LETTER_ID },
]);

/**
 * Ids in values: our own, or those of the configured schema registry. A process that serves requests them at its start,
 * a command when it writes. @throws SettingsError for a registry with the embedded broker, which no other program
 * reads; Error in one line when the registry cannot be used
 */
export async function openSchemaIds(
  { broker }: Pick<Settings, 'broker'>,
  log: Logger,
  serving: boolean,
): Promise<SchemaIds> {
  if (broker.schema_registry_url === undefined) return OWN_IDS;
  if (broker.url === 'postgres') {
    throw new SettingsError(
      'LUMIO_BROKER__SCHEMA_REGISTRY_URL (broker.schema_registry_url): has no meaning without kafka:// in LUMIO_BROKER__URL',
    );
  }
  // In the order of our ids, so that a new registry assigns the same ones.
  const written = WRITTEN.toSorted((a, b) => a.schema_id - b.schema_id);
  const schemas = new Map([...SCHEMAS, ...RELAYED_SCHEMAS]);
  const ids = createSchemaRegistry({ url: broker.schema_registry_url, schemas, written, log });
  try {
    if (serving) await ids.ready();
    return ids;
  } catch (error) {
    throw new Error(`LUMIO_BROKER__SCHEMA_REGISTRY_URL: ${(error as Error).message}`, { cause: error });
  }
}
