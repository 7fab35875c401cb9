import type { z } from 'zod';
import type { BytesOf } from '../../../kernel/operations/pages';
import { RawJson } from '../../../lib/json/raw-json';
import { unwrap } from '../../openapi/schema-shape';

/** Types of members whose size the schema bounds. */
const BOUNDED = new Set(['string', 'number', 'boolean', 'enum', 'literal']);

/**
 * Measures the members of rows whose size callers determine: lists, records and any JSON. Texts and numbers of a row
 * are short, so that they are not measured. Counts characters as bytes.
 */
export function rowBytes(output: z.ZodType): BytesOf {
  const { def } = unwrap(output, 'output');
  if (def.type !== 'object') return BOUNDED.has(def.type) ? () => 0 : charactersOf;
  const open = Object.entries(def.shape!).flatMap(([name, schema]) => {
    return BOUNDED.has(unwrap(schema, 'output').def.type) ? [] : [name];
  });
  return (row) => {
    let sum = 0;
    for (const name of open) sum += charactersOf((row as Record<string, unknown>)[name]);
    return sum;
  };
}

/** Characters of a value's JSON without escapes, blanks and numbers. */
function charactersOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  if (value instanceof RawJson) return value.text.length;
  let sum = 0;
  if (Array.isArray(value)) for (const item of value) sum += charactersOf(item);
  else for (const name in value) sum += name.length + charactersOf((value as Record<string, unknown>)[name]);
  return sum;
}
