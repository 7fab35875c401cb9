import { Type, type Schema } from 'avsc';
import { deadLettersOf, TOPICS } from '../../domain/common/records';
import { MAX_VALUE_BYTES } from '../broker/port';
import type { RelayedDeadLetter, RelayedDomainEvent, RelayCodec } from './port';
import { OWN_IDS, type SchemaIds } from './schema-ids';
import { frame } from './schemas';

/** Avro schema of the topic `domain-events`, version 1. */
export const DOMAIN_EVENT_V1: Schema = {
  type: 'record',
  name: 'DomainEvent',
  namespace: 'lumio.records',
  fields: [
    { name: 'id', type: { type: 'string', logicalType: 'uuid' } },
    { name: 'stream', type: 'string' },
    { name: 'revision', type: 'long' },
    { name: 'type', type: 'string' },
    { name: 'version', type: 'int' },
    { name: 'data', type: ['null', 'string'] },
    { name: 'metadata', type: { type: 'map', values: 'string' } },
    { name: 'recorded_at', type: 'string' },
  ],
};

/** Avro schema of the topics `….dead-letters`, version 1. */
export const DEAD_LETTER_V1: Schema = {
  type: 'record',
  name: 'DeadLetter',
  namespace: 'lumio.records',
  fields: [
    { name: 'id', type: 'string' },
    { name: 'letter_id', type: 'long' },
    { name: 'status', type: 'string' },
    { name: 'attempts', type: 'int' },
    { name: 'projection', type: 'string' },
    { name: 'reason', type: 'string' },
    { name: 'error', type: 'string' },
    { name: 'topic', type: 'string' },
    { name: 'partition', type: 'int' },
    { name: 'position', type: 'string' },
    { name: 'type', type: ['null', 'string'] },
    { name: 'account_id', type: ['null', 'string'] },
    { name: 'first_failed_at', type: 'string' },
    { name: 'last_failed_at', type: 'string' },
    { name: 'settled_at', type: ['null', 'string'] },
    { name: 'record_key', type: ['null', 'string'] },
    { name: 'record', type: ['null', 'bytes'] },
    { name: 'event', type: ['null', DOMAIN_EVENT_V1] },
  ],
};

export const DOMAIN_EVENT_ID = 2;
export const DEAD_LETTER_ID = 3;

/**
 * Schemas of the relayed topics, by the id in their records. Ids share one space with those of the envelope
 * (`schemas.ts`) and are never reused.
 */
export const RELAYED_SCHEMAS: ReadonlyMap<number, Schema> = new Map([
  [DOMAIN_EVENT_ID, DOMAIN_EVENT_V1],
  [DEAD_LETTER_ID, DEAD_LETTER_V1],
]);

/**
 * Encodes values for outside consumers in the Confluent wire format; `schema_ids` must be ready. A value above the
 * largest size of a record is encoded without its payload.
 */
export function createRelayCodec(schema_ids: SchemaIds = OWN_IDS): RelayCodec {
  const encoder = <T>(id: number) => {
    const type = Type.forSchema(RELAYED_SCHEMAS.get(id)!);
    return (topic: string, value: T, without: Partial<T>): Buffer => {
      const wire_id = schema_ids.onWire(topic, id);
      const whole = frame(wire_id, type.toBuffer(value));
      return whole.length <= MAX_VALUE_BYTES ? whole : frame(wire_id, type.toBuffer({ ...value, ...without }));
    };
  };
  const event = encoder<RelayedDomainEvent>(DOMAIN_EVENT_ID);
  const letter = encoder<RelayedDeadLetter>(DEAD_LETTER_ID);
  return {
    domainEvent: (value) => event(TOPICS.domain_events, value, { data: null }),
    deadLetter: (value) => letter(deadLettersOf(value.topic), value, { record: null, event: null }),
  };
}
