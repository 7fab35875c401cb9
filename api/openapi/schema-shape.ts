import type { z } from 'zod';

/** A zod schema's inner definition, as far as the API reads it. */
export interface ZodDef {
  type: string;
  innerType?: z.ZodType;
  in?: z.ZodType;
  out?: z.ZodType;
  element?: z.ZodType;
  options?: z.ZodType[];
  /** The member whose value identifies an option of a union. */
  discriminator?: string;
  entries?: Record<string, string | number>;
  values?: unknown[];
  shape?: Record<string, z.ZodType>;
  format?: string;
  checks?: { _zod: { def: Record<string, unknown> } }[];
  defaultValue?: unknown;
  getter?: () => z.ZodType;
}

export const defOf = (schema: z.ZodType): ZodDef => (schema as unknown as { _zod: { def: ZodDef } })._zod.def;

/** Members of zod's `.meta()` besides the keywords of JSON Schema. */
export interface ApiMeta {
  /** Name of the type in OpenAPI and GraphQL. */
  id?: string;
  description?: string;
  /** GraphQL scalar to use instead of the derived one (`ID`, `Int53`, `JSON`, `String`). */
  graphql?: string;
  /** GraphQL field name instead of the camelCase of the member. */
  graphql_name?: string;
}

export function metaOf(schema: z.ZodType): ApiMeta {
  return ((schema as { meta?: () => unknown }).meta?.() ?? {}) as ApiMeta;
}

export interface Unwrapped {
  schema: z.ZodType;
  def: ZodDef;
  meta: ApiMeta;
  /** Null is a valid value. */
  nullable: boolean;
  /** The member may be absent (optional, or with a default). */
  optional: boolean;
}

/** Removes optional, nullable, default, pipe, readonly … from a schema, for its `input` or `output` side. */
export function unwrap(schema: z.ZodType, side: 'input' | 'output'): Unwrapped {
  let nullable = false;
  let optional = false;
  let meta: ApiMeta = {};
  for (let current = schema; ;) {
    const def = defOf(current);
    meta = { ...metaOf(current), ...meta };
    switch (def.type) {
      case 'nullable':
        nullable = true;
        current = def.innerType!;
        break;
      case 'optional':
        optional = true;
        current = def.innerType!;
        break;
      case 'default':
      case 'prefault':
        if (side === 'input') optional = true;
        current = def.innerType!;
        break;
      case 'nonoptional':
      case 'catch':
      case 'readonly':
        current = def.innerType!;
        break;
      case 'lazy':
        current = def.getter!();
        break;
      case 'pipe': {
        const isTransform = (part: z.ZodType) => defOf(part).type === 'transform';
        // A preprocess step has no shape of its own: the schema after it has. For a transform on the output side the
        // schema before it has.
        const preferred = side === 'input' ? def.in! : def.out!;
        current = isTransform(preferred) ? (side === 'input' ? def.out! : def.in!) : preferred;
        break;
      }
      default:
        return { schema: current, def, meta, nullable, optional };
    }
  }
}

/** Members of an object schema, with or without wrappers. */
export function shapeOf(schema: z.ZodType, side: 'input' | 'output'): Readonly<Record<string, z.ZodType>> {
  const { def } = unwrap(schema, side);
  if (def.type !== 'object' || !def.shape) throw new Error(`an object schema is needed here, not ${def.type}`);
  return def.shape;
}

/** Option of a discriminated union. */
export interface UnionOption {
  /** Value of the discriminator. */
  value: string;
  schema: z.ZodType;
}

/**
 * The options of a discriminated union; null for any other schema. @throws Error for options that are not plain objects
 */
export function optionsOf(def: ZodDef): { member: string; options: UnionOption[] } | null {
  if (def.type !== 'union' || def.discriminator === undefined) return null;
  const member = def.discriminator;
  const options = def.options!.map((schema) => {
    const literal = shapeOf(schema, 'output')[member];
    const values = literal ? (defOf(literal).values ?? []) : [];
    if (values.length !== 1 || typeof values[0] !== 'string') {
      throw new Error(`each option of a union by ${member} must be an object with one text there`);
    }
    return { value: values[0], schema };
  });
  return { member, options };
}
