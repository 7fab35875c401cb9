import type { z } from 'zod';
import type { EventDeclaration } from './event';

/** The zod definition of a schema, as far as columns need it. */
interface Definition {
  type: string;
  format?: string;
  innerType?: z.core.$ZodType;
  element?: z.core.$ZodType;
}

const BY_FORMAT: Readonly<Record<string, string>> = {
  uuid: 'uuid',
  guid: 'uuid',
  datetime: 'timestamptz',
  date: 'date',
  safeint: 'bigint',
  int32: 'integer',
};
const BY_TYPE: Readonly<Record<string, string>> = {
  string: 'text',
  enum: 'text',
  literal: 'text',
  boolean: 'boolean',
  number: 'double precision',
  object: 'jsonb',
  record: 'jsonb',
  union: 'jsonb',
  unknown: 'jsonb',
};
const WRAPPERS = new Set(['nullable', 'optional', 'default', 'readonly']);

/** The PostgreSQL type in which a recordset shows a member of this schema. @throws Error when there is none */
export function columnType(schema: z.core.$ZodType): string {
  const definition = schema._zod.def as Definition;
  if (WRAPPERS.has(definition.type)) return columnType(definition.innerType!);
  if (definition.type === 'array') {
    const element = columnType(definition.element!);
    return element === 'jsonb' ? 'jsonb' : `${element}[]`;
  }
  const column = BY_FORMAT[definition.format ?? ''] ?? BY_TYPE[definition.type];
  if (column === undefined) throw new Error(`no column type for a member of type ${definition.type}`);
  return column;
}

/** The column definition list of an event type for `jsonb_to_recordset`, one column a member. */
export const columnsOf = ({ schema }: EventDeclaration): string =>
  Object.entries(schema.shape)
    .map(([name, member]) => `${name} ${columnType(member as z.core.$ZodType)}`)
    .join(', ');
