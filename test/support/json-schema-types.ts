type Json = Record<string, unknown>;

const INDENT = '  ';

/** TypeScript of a JSON Schema as zod writes it; a reference is the name at its end. */
export function typeOf(schema: Json, depth = 0): string {
  const { $ref, enum: values, anyOf, oneOf, type, items } = schema;
  if (typeof $ref === 'string') return $ref.slice($ref.lastIndexOf('/') + 1);
  if ('const' in schema) return literal(schema.const);
  if (Array.isArray(values)) return union(values.map(literal));
  const either = (anyOf ?? oneOf) as Json[] | undefined;
  if (either) return union(either.map((one) => typeOf(one, depth)));
  if (Array.isArray(type)) return union(type.map((one) => typeOf({ ...schema, type: one }, depth)));
  if (type === 'array') {
    const item = typeOf((items ?? {}) as Json, depth);
    return / /.test(item) && !item.startsWith('{') ? `(${item})[]` : `${item}[]`;
  }
  if (type === 'object') return members(schema, depth);
  if (type === 'integer') return 'number';
  return typeof type === 'string' ? type : 'unknown';
}

/** The members of an object in braces, a line each, with what their schemas say of them. */
function members({ properties = {}, required = [], additionalProperties }: Json, depth: number): string {
  if (Object.keys(properties as Json).length === 0) return 'Record<string, unknown>';
  const inner = INDENT.repeat(depth + 1);
  const lines = Object.entries(properties as Record<string, Json>).flatMap(([name, schema]) => {
    const { description } = schema;
    const optional = (required as string[]).includes(name) ? '' : '?';
    const shown = /^[A-Za-z_]\w*$/.test(name) ? name : `'${name}'`;
    return [
      ...(typeof description === 'string' ? [`${inner}/** ${description} */`] : []),
      `${inner}${shown}${optional}: ${typeOf(schema, depth + 1)};`,
    ];
  });
  if (typeof additionalProperties === 'object') lines.push(`${inner}[more: string]: unknown;`);
  return `{\n${lines.join('\n')}\n${INDENT.repeat(depth)}}`;
}

/** A text in single quotes, as the house writes it. */
const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "\\'")}'` : JSON.stringify(value);

const union = (types: readonly string[]): string => [...new Set(types)].join(' | ');
