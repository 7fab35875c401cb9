import { z } from 'zod';
import { tellOptions } from '../rest/serialise';

type Json = Record<string, unknown>;

/** JSON Schema of a zod schema, with its named parts moved to the components. */
export function jsonSchema(
  schema: z.ZodType,
  io: 'input' | 'output',
  components: Record<string, Json>,
  inline = false,
): Json {
  const {
    $schema: _dialect,
    $defs,
    ...root
  } = z.toJSONSchema(schema, { io, unrepresentable: 'any', override: tellOptions }) as Json;
  for (const [name, definition] of Object.entries(($defs ?? {}) as Record<string, Json>)) {
    components[componentName(name, io)] ??= relinked(definition, io) as Json;
  }
  if (inline && typeof root.$ref === 'string') {
    return components[componentName(root.$ref.replace('#/$defs/', ''), io)]!;
  }
  return relinked(root, io) as Json;
}

/** Component name, distinct for input and output, because a zod type may differ between the two. */
const componentName = (name: string, io: 'input' | 'output') =>
  io === 'input' && !/Input$/.test(name) ? `${name}Input` : name;

function relinked(value: unknown, io: 'input' | 'output'): unknown {
  if (Array.isArray(value)) return value.map((item) => relinked(item, io));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'graphql' && name !== 'graphql_name' && name !== 'id')
      .map(([name, inner]) => {
        if (name === '$ref' && typeof inner === 'string') {
          return [name, `#/components/schemas/${componentName(inner.replace('#/$defs/', ''), io)}`];
        }
        if (name === 'mapping') {
          const linked = Object.entries(inner as Record<string, string>).map(([value, ref]) => {
            return [value, `#/components/schemas/${componentName(ref.replace('#/$defs/', ''), io)}`];
          });
          return [name, Object.fromEntries(linked)];
        }
        if (name === 'properties') {
          return [
            name,
            Object.fromEntries(Object.entries(inner as Json).map(([key, member]) => [key, relinked(member, io)])),
          ];
        }
        return [name, relinked(inner, io)];
      }),
  );
}
