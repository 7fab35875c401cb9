import fastJsonStringify from 'fast-json-stringify';
import { z } from 'zod';
import { withRawJson } from '../../lib/json/raw-json';
import type { Enveloped } from './envelopes';
import { defOf, metaOf, optionsOf } from '../openapi/schema-shape';

type Schema = Record<string, unknown>;

/** JSON Schema of an output; types that JSON Schema cannot express are left open. */
export function outputJsonSchema(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, {
    io: 'output',
    unrepresentable: 'any',
    cycles: 'ref',
    override: tellOptions,
  }) as Schema;
}

/** Adds the discriminator to the schema of a discriminated union, and replaces `anyOf` by `oneOf`. */
export function tellOptions({ zodSchema, jsonSchema }: { zodSchema: unknown; jsonSchema: object }): void {
  const union = optionsOf(defOf(zodSchema as z.ZodType));
  if (union === null) return;
  const schema = jsonSchema as Schema;
  schema.oneOf ??= schema.anyOf;
  delete schema.anyOf;
  const named = union.options.map(({ value, schema: option }) => [value, metaOf(option).id] as const);
  const mapping = Object.fromEntries(named.map(([value, id]) => [value, `#/$defs/${id}`]));
  schema.discriminator = { propertyName: union.member, ...(named.every(([, id]) => id) && { mapping }) };
}

/**
 * Compiles the writer of an operation's answers. Only members of the schema are sent; a `RawJson` inside is sent byte
 * for byte. The writer throws RawJsonTooLong where these have more than `longest` characters.
 */
export function compileSerialiser(
  output: z.ZodType,
  envelope: Pick<Enveloped, 'schema'>,
  longest = Infinity,
): (answer: unknown) => string {
  const full = outputJsonSchema(output);
  const whole = writable(envelope.schema(full), (full.$defs ?? {}) as Record<string, Schema>, []);
  const write = fastJsonStringify(whole as unknown as Parameters<typeof fastJsonStringify>[0]);
  return (answer) => withRawJson(() => write(answer), longest);
}

/**
 * The part of a JSON Schema that the writer needs: types and members, with references resolved. Unions without a
 * discriminator, and open objects (whose value may be `RawJson`), are left to `JSON.stringify`.
 */
function writable(schema: Schema, defs: Record<string, Schema>, seen: readonly string[]): Schema {
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.replace('#/$defs/', '');
    if (seen.includes(name) || !defs[name]) return {};
    return writable(defs[name], defs, [...seen, name]);
  }
  const options = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
  if (options && schema.discriminator) {
    const { propertyName } = schema.discriminator as { propertyName: string };
    return chosen(options, propertyName, defs, seen);
  }
  if (options) {
    const others = options.filter((option) => option.type !== 'null');
    if (others.length !== 1) return {};
    const only = writable(others[0]!, defs, seen);
    return typeof only.type === 'string' ? { ...only, nullable: true } : only;
  }
  const types = Array.isArray(schema.type) ? (schema.type as string[]) : [schema.type as string | undefined];
  const named = types.filter((type) => type !== 'null');
  if (named.length !== 1 || named[0] === undefined) return {};
  const nullable = types.includes('null') ? { nullable: true } : {};
  switch (named[0]) {
    case 'object': {
      const members = schema.properties as Record<string, Schema> | undefined;
      if (!members || schema.additionalProperties !== false) return {};
      const properties = Object.fromEntries(
        Object.entries(members).map(([name, member]) => [name, writable(member, defs, seen)]),
      );
      return { type: 'object', properties, ...nullable };
    }
    case 'array':
      return { type: 'array', items: writable((schema.items ?? {}) as Schema, defs, seen), ...nullable };
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
      return { type: named[0], ...nullable };
    default:
      return {};
  }
}

/** Chooses the object schema by the discriminator's value alone, because our own code made the rest of the value. */
function chosen(
  options: readonly Schema[],
  member: string,
  defs: Record<string, Schema>,
  seen: readonly string[],
): Schema {
  const objects = options.map((option) => {
    const full = typeof option.$ref === 'string' ? defs[option.$ref.replace('#/$defs/', '')]! : option;
    const { const: value } = (full.properties as Record<string, Schema>)[member]!;
    return { value, object: writable(option, defs, seen) };
  });
  return objects.reduceRight<Schema>(
    (otherwise, { value, object }) => ({
      type: 'object',
      if: { type: 'object', properties: { [member]: { const: value } } },
      then: object,
      else: otherwise,
    }),
    { type: 'object', properties: {} },
  );
}
