import { Type, type Schema } from 'avsc';
import type { RecordEnvelope } from '../../domain/common/records';

/** Members that are written as headers. */
export type OptionalMember = 'same_raw' | 'former_id' | 'reported_at' | 'seen_at' | 'cause' | 'depth';

/** The written form of an envelope: `raw` is UTF-8 text, encrypted by `cipher.ts` when `key_id` is not null. */
export interface WrittenEnvelope extends Omit<RecordEnvelope, 'raw' | OptionalMember> {
  key_id: string | null;
  raw: Buffer;
}

/**
 * Avro schema of the record envelope, version 1 (design §6). Times are text, because an Avro timestamp would cut the
 * nanoseconds that vendors send.
 */
export const ENVELOPE_V1: Schema = {
  type: 'record',
  name: 'RecordEnvelope',
  namespace: 'lumio.records',
  fields: [
    { name: 'id', type: { type: 'string', logicalType: 'uuid' } },
    { name: 'account_id', type: { type: 'string', logicalType: 'uuid' } },
    { name: 'type', type: 'string' },
    { name: 'platform', type: 'string' },
    { name: 'external_id', type: ['null', 'string'] },
    { name: 'occurred_at', type: 'string' },
    { name: 'received_at', type: 'string' },
    { name: 'subject', type: ['null', 'string'] },
    { name: 'key_id', type: ['null', 'string'] },
    { name: 'raw', type: 'bytes' },
    { name: 'trace', type: ['null', 'string'] },
  ],
};

/**
 * Every schema that was ever written, by the id in its records. An entry is never changed and an id never reused.
 */
export const SCHEMAS: ReadonlyMap<number, Schema> = new Map([[1, ENVELOPE_V1]]);
export const WRITTEN_SCHEMA_ID = 1;

/** A value that is not an envelope of a schema known here. */
export class Undecodable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Undecodable';
  }
}

const MAGIC = 0;
/** Magic byte and schema id. */
export const HEAD_BYTES = 5;

/** Envelopes in the Confluent wire format: magic byte 0, schema id (int4, big-endian), Avro body. */
export interface EnvelopeCodec {
  /** Encodes an envelope with the schema's own id, or with its id on the wire. */
  encode(envelope: WrittenEnvelope, wire_id?: number): Buffer;
  /** Decodes by the schema id in the value, or by `schema_id`. @throws Undecodable */
  decode(value: Buffer, schema_id?: number): WrittenEnvelope;
}

/**
 * A codec that reads values of any of `schemas`, older or newer, as schema `reader_id`: missing fields get their
 * defaults, unknown ones are skipped.
 * @throws Error when a schema cannot be read as the reader's, so that a bad evolution stops the start
 */
export function createEnvelopeCodec(schemas = SCHEMAS, reader_id = WRITTEN_SCHEMA_ID): EnvelopeCodec {
  const typeOf = (id: number): Type => {
    const schema = schemas.get(id);
    if (!schema) throw new Error(`there is no schema ${id}`);
    return Type.forSchema(schema);
  };
  const reader = typeOf(reader_id);
  const writers = new Map<number, { resolver: ReturnType<Type['createResolver']> | undefined }>();
  for (const id of schemas.keys()) {
    writers.set(id, { resolver: id === reader_id ? undefined : reader.createResolver(typeOf(id)) });
  }
  let scratch = Buffer.allocUnsafe(64 * 1024);
  return {
    encode(envelope, wire_id = reader_id) {
      let end = reader.encode(envelope, scratch, HEAD_BYTES);
      if (end < 0) {
        // A negative end is the number of missing bytes.
        const buffer = Buffer.allocUnsafe(scratch.length - end);
        if (buffer.length <= 1024 * 1024) scratch = buffer;
        end = reader.encode(envelope, buffer, HEAD_BYTES);
        return finish(buffer, end, wire_id);
      }
      return finish(scratch, end, wire_id);
    },
    decode(value, schema_id) {
      if (value.length < HEAD_BYTES || value[0] !== MAGIC)
        throw new Undecodable('the value does not begin with magic byte 0 and a schema id');
      const id = schema_id ?? value.readInt32BE(1);
      const writer = writers.get(id);
      if (!writer) throw new Undecodable(`unknown schema id ${id}: written by a newer version, or not by Lumio`);
      let decoded: { value: WrittenEnvelope | undefined; offset: number };
      try {
        decoded = reader.decode(value, HEAD_BYTES, writer.resolver) as typeof decoded;
      } catch (cause) {
        throw new Undecodable(`broken Avro of schema ${id}: ${(cause as Error).message}`, { cause });
      }
      if (decoded.offset !== value.length || decoded.value === undefined) {
        throw new Undecodable(
          `broken Avro of schema ${id}: the body is ${decoded.offset < 0 ? 'cut off' : 'longer than the record'}`,
        );
      }
      return decoded.value;
    },
  };
}

/** Adds the head to a body. */
export function frame(schema_id: number, body: Buffer): Buffer {
  const head = Buffer.alloc(HEAD_BYTES, MAGIC);
  head.writeInt32BE(schema_id, 1);
  return Buffer.concat([head, body]);
}

function finish(buffer: Buffer, end: number, schema_id: number): Buffer {
  buffer[0] = MAGIC;
  buffer.writeInt32BE(schema_id, 1);
  return Buffer.from(buffer.subarray(0, end));
}
