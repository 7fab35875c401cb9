import { randomBytes } from 'node:crypto';
import { type Schema, Type } from 'avsc';
import { type Column, type ColumnKind, typedValue } from './columns';
import type { Encoder, Written } from './encoder';

const MAGIC = Buffer.from('Obj\u0001', 'latin1');
const SYNC_BYTES = 16;
const TYPES: Readonly<Record<ColumnKind, Schema>> = {
  text: 'string',
  integer: 'long',
  number: 'double',
  flag: 'boolean',
  time: { type: 'long', logicalType: 'timestamp-micros' },
};

const METADATA = Type.forSchema({ type: 'map', values: 'bytes' });
const LONG = Type.forSchema('long');

/** Object container files of Avro: a block for each batch. */
export function avroEncoder(columns: readonly Column[], written: Written | null): Encoder {
  const schema = {
    type: 'record' as const,
    name: 'row',
    fields: columns.map(({ name, kind }) => ({ name, type: ['null', TYPES[kind]] as Schema, default: null })),
  };
  const type = Type.forSchema(schema as Schema);
  const sync = written === null ? randomBytes(SYNC_BYTES) : Buffer.from(written.state ?? '', 'hex');
  const metadata = { 'avro.schema': Buffer.from(JSON.stringify(schema)), 'avro.codec': Buffer.from('null') };
  return {
    head: Buffer.concat([MAGIC, METADATA.toBuffer(metadata), sync]),
    rows(rows) {
      const data = Buffer.concat(
        rows.map((row) => type.toBuffer(Object.fromEntries(columns.map((one) => [one.name, typedValue(one, row)])))),
      );
      return Buffer.concat([LONG.toBuffer(rows.length), LONG.toBuffer(data.length), data, sync]);
    },
    state: () => sync.toString('hex'),
    tail: () => Buffer.alloc(0),
  };
}
