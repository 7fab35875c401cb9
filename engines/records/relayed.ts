import { Type, type Schema } from 'avsc';
import { MAX_VALUE_BYTES } from '../broker/port';
import type { RelayedDeadLetter, RelayedDomainEvent, RelayCodec } from './port';
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

/** Schemas of what is relayed, by the id that their records carry; ids are shared with the envelope's (`schemas.ts`) and never used again. */
export const RELAYED_SCHEMAS: ReadonlyMap<number, Schema> = new Map([
  [2, DOMAIN_EVENT_V1],
  [3, DEAD_LETTER_V1],
]);

/** What outside consumers read, in the Confluent wire format. What would be larger than a record may be goes without its payload. */
export function createRelayCodec(): RelayCodec {
  const encoder = <T>(id: number) => {
    const type = Type.forSchema(RELAYED_SCHEMAS.get(id)!);
    return (value: T, without: Partial<T>): Buffer => {
      const whole = frame(id, type.toBuffer(value));
      return whole.length <= MAX_VALUE_BYTES ? whole : frame(id, type.toBuffer({ ...value, ...without }));
    };
  };
  const event = encoder<RelayedDomainEvent>(2);
  const letter = encoder<RelayedDeadLetter>(3);
  return {
    domainEvent: (value) => event(value, { data: null }),
    deadLetter: (value) => letter(value, { record: null, event: null }),
  };
}
