import type { Settings } from '../../kernel/settings';
import { deadLettersOf, TOPICS } from '../../domain/records';
import type { Logger } from '../log/port';
import { DEAD_LETTER_ID, DOMAIN_EVENT_ID, RELAYED_SCHEMAS } from './relayed';
import { OWN_IDS, type SchemaIds } from './schema-ids';
import { createSchemaRegistry } from './schema-registry';
import { SCHEMAS, WRITTEN_SCHEMA_ID } from './schemas';
import { SettingsError } from '../../kernel/settings-error';

/** Everything that is written to topics. */
const WRITTEN = Object.values(TOPICS).flatMap((topic) => [
  { topic, schema_id: topic === TOPICS.domain_events ? DOMAIN_EVENT_ID : WRITTEN_SCHEMA_ID },
  { topic: deadLettersOf(topic), schema_id: DEAD_LETTER_ID },
]);

/**
 * The ids that values carry: our own, or those of the schema registry that the settings name. A process that serves
 * asks it at its start, a command when it writes. @throws SettingsError for a registry beside a broker that nobody else
 * reads; Error in one line when it cannot be used
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
  // Ours first, in the order of our ids: in a registry that is new they are then the same.
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
