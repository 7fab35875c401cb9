import {
  GraphQLBoolean,
  GraphQLEnumType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInputObjectType,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLString,
  GraphQLUnionType,
  type GraphQLFieldConfig,
  type GraphQLInputFieldConfig,
  type GraphQLInputType,
  type GraphQLOutputType,
  type GraphQLScalarType,
} from 'graphql';
import type { z } from 'zod';
import { defOf, metaOf, optionsOf, shapeOf, unwrap, type Unwrapped } from '../openapi/schema-shape';
import {
  type Convert,
  eachOf,
  inputConverter,
  type InputMember,
  type InputType,
  objectConverter,
  type OutputMember,
} from './converters';
import { camelCase, enumName, pascalCase } from './names';
import { numberType, textType } from './scalar-types';
import { DateTime, Int53, JsonScalar, Uuid } from './scalars';
import type { UnionSource } from './sources';

const SCALARS: Readonly<Record<string, GraphQLScalarType>> = {
  ID: GraphQLID,
  String: GraphQLString,
  Int: GraphQLInt,
  Float: GraphQLFloat,
  Boolean: GraphQLBoolean,
  JSON: JsonScalar,
  Int53,
  UUID: Uuid,
  DateTime,
};

export interface OutputType {
  type: GraphQLOutputType;
  convert: Convert | null;
}
/** GraphQL types made from zod schemas, one per name. */
export class TypeRegistry {
  private readonly outputs = new Map<string, OutputType & { schema: z.ZodType }>();
  private readonly inputs = new Map<string, InputType & { names: string }>();
  private readonly enums = new Map<string, GraphQLEnumType>();

  /** `renamed`: type name → GraphQL field → member, for fields that are not the member's camelCase. */
  constructor(private readonly renamed: ReadonlyMap<string, Readonly<Record<string, string>>>) {}

  /** `path` names types without a name of their own. */
  output(schema: z.ZodType, path: string): OutputType {
    const inner = unwrap(schema, 'output');
    const built = this.outputOf(inner, path);
    const optional = inner.nullable || inner.optional;
    return optional ? built : { ...built, type: new GraphQLNonNull(built.type as never) };
  }

  private outputOf(inner: Unwrapped, path: string): OutputType {
    const scalar = this.scalar(inner, 'output');
    if (scalar) return { type: scalar, convert: null };
    switch (inner.def.type) {
      case 'array': {
        const item = this.output(inner.def.element!, path);
        const { convert } = item;
        return {
          type: new GraphQLList(item.type),
          convert: convert && eachOf(convert),
        };
      }
      case 'object':
        return this.objectOf(inner, path);
      case 'union':
        return this.unionOf(inner, path) ?? { type: JsonScalar, convert: null };
      default:
        return { type: JsonScalar, convert: null };
    }
  }

  /** Type of a discriminated union; `__typename` identifies its objects. Null for any other union. */
  private unionOf(inner: Unwrapped, path: string): OutputType | null {
    const union = optionsOf(inner.def);
    if (union === null) return null;
    const name = inner.meta.id ?? path;
    const known = this.outputs.get(name);
    if (known) return known;
    const converts = new Map<unknown, Convert>();
    const types = new Map<string, GraphQLObjectType>();
    for (const { value, schema } of union.options) {
      const { type, convert } = this.objectOf(unwrap(schema, 'output'), name + pascalCase(value));
      const object = type as GraphQLObjectType;
      converts.set(value, (raw_value) => Object.assign(convert!(raw_value) as object, { __typename: object.name }));
      types.set(value, object);
    }
    const source: UnionSource = { member: union.member, types };
    const type = new GraphQLUnionType({
      name,
      description: inner.meta.description,
      types: [...types.values()],
      extensions: { source },
      resolveType: (value) => (value as { __typename: string }).__typename,
    });
    const convert: Convert = (value) => {
      const one = (value as Record<string, unknown>)[union.member];
      const shown = converts.get(one);
      if (!shown) throw new Error(`${name}: ${String(one)} is none of its objects`);
      return shown(value);
    };
    const entry = { type, schema: inner.schema, convert };
    this.outputs.set(name, entry);
    return entry;
  }

  private objectOf(inner: Unwrapped, path: string): OutputType {
    const name = inner.meta.id ?? path;
    const known = this.outputs.get(name);
    if (known) {
      if (known.schema !== inner.schema && memberNames(known.schema) !== memberNames(inner.schema)) {
        throw new Error(`two different schemas are both named ${name}`);
      }
      return known;
    }
    const members: OutputMember[] = [];
    const renamed = Object.entries(this.renamed.get(name) ?? {});
    const type = new GraphQLObjectType({
      name,
      description: inner.meta.description,
      fields: () => {
        const fields: Record<string, GraphQLFieldConfig<unknown, unknown>> = {};
        for (const [member, schema] of Object.entries(inner.def.shape!)) {
          const field =
            renamed.find(([, from]) => from === member)?.[0] ?? metaOf(schema).graphql_name ?? camelCase(member);
          const { type: memberType, convert } = this.output(schema, name + pascalCase(member));
          const { description } = metaOf(schema);
          fields[field] = { type: memberType, description, extensions: { source: member } };
          members.push({ from: member, to: field, convert });
        }
        return fields;
      },
    });
    const entry = { type, schema: inner.schema, convert: objectConverter(members) };
    this.outputs.set(name, entry);
    return entry;
  }

  input(schema: z.ZodType, path: string): InputType {
    const inner = unwrap(schema, 'input');
    const built = this.inputOf(inner, path);
    const required = !inner.nullable && !inner.optional;
    return {
      type: required ? new GraphQLNonNull(built.type as never) : built.type,
      convert: built.convert,
      null_is_absent: !inner.nullable,
      required,
    };
  }

  private inputOf(inner: Unwrapped, path: string): { type: GraphQLInputType; convert: Convert | null } {
    const scalar = this.scalar(inner, 'input');
    if (scalar) return { type: scalar, convert: null };
    switch (inner.def.type) {
      case 'array': {
        const { type, convert } = this.input(inner.def.element!, path);
        return {
          type: new GraphQLList(type),
          convert: convert && eachOf(convert),
        };
      }
      case 'object':
        return this.inputObject(inner.meta.id ?? `${path}Input`, inner.def.shape!, inner.meta.description);
      case 'union':
        return this.inputUnion(inner, path) ?? { type: JsonScalar, convert: null };
      default:
        return { type: JsonScalar, convert: null };
    }
  }

  /**
   * Input of a discriminated union. GraphQL has no unions of inputs, so that the input is an object with exactly one
   * member (`@oneOf`), named after the discriminator's value, which holds the option's other members.
   */
  private inputUnion(inner: Unwrapped, path: string): { type: GraphQLInputType; convert: Convert } | null {
    const union = optionsOf(inner.def);
    if (union === null) return null;
    const name = inner.meta.id ?? `${path}Input`;
    const options = union.options.map(({ value, schema }) => {
      const { [union.member]: _discriminator, ...others } = shapeOf(schema, 'input');
      return { field: camelCase(value), value, input: this.inputObject(`${name}${pascalCase(value)}`, others) };
    });
    const type = new GraphQLInputObjectType({
      name,
      description: inner.meta.description,
      isOneOf: true,
      fields: Object.fromEntries(options.map(({ field, input }) => [field, { type: input.type }])),
    });
    return {
      type,
      convert(raw_value) {
        const [[field, members] = []] = Object.entries(raw_value as Record<string, unknown>);
        const option = options.find((one) => one.field === field)!;
        return { [union.member]: option.value, ...(option.input.convert!(members) as object) };
      },
    };
  }

  /** An input object over some members of a schema. */
  inputObject(name: string, shape: Readonly<Record<string, z.ZodType>>, description?: string): InputType {
    const known = this.inputs.get(name);
    if (known) {
      if (known.names !== Object.keys(shape).join(' ')) throw new Error(`two different inputs are both named ${name}`);
      return known;
    }
    const members = this.members(shape, name);
    const fields = Object.fromEntries(
      [...members].map(([field, { type, description: text }]): [string, GraphQLInputFieldConfig] => [
        field,
        { type, description: text },
      ]),
    );
    const built = {
      names: Object.keys(shape).join(' '),
      type: new GraphQLInputObjectType({ name, description, fields }),
      convert: inputConverter(members),
      null_is_absent: true,
      required: [...members.values()].some((member) => member.required),
    };
    this.inputs.set(name, built);
    return built;
  }

  /** GraphQL name → member of an input schema. */
  members(shape: Readonly<Record<string, z.ZodType>>, owner: string): Map<string, InputMember> {
    return new Map(
      Object.entries(shape).map(([member, schema]) => [
        metaOf(schema).graphql_name ?? camelCase(member),
        { ...this.input(schema, owner + pascalCase(member)), member, description: metaOf(schema).description },
      ]),
    );
  }

  private scalar(inner: Unwrapped, side: 'input' | 'output'): GraphQLScalarType | GraphQLEnumType | null {
    const { def, meta } = inner;
    if (meta.graphql) {
      const named = SCALARS[meta.graphql];
      if (!named) throw new Error(`unknown GraphQL scalar ${meta.graphql}`);
      return named;
    }
    switch (def.type) {
      case 'string':
        return textType(def, side);
      case 'boolean':
        return GraphQLBoolean;
      case 'number':
        return numberType(def);
      case 'enum':
        return meta.id ? this.enumType(meta.id, Object.values(def.entries!), meta.description) : GraphQLString;
      case 'literal':
        return typeof def.values?.[0] === 'boolean'
          ? GraphQLBoolean
          : typeof def.values?.[0] === 'number'
            ? GraphQLInt
            : GraphQLString;
      default:
        return null;
    }
  }

  private enumType(name: string, entries: (string | number)[], description?: string): GraphQLEnumType {
    let type = this.enums.get(name);
    if (!type) {
      const values = Object.fromEntries(entries.map((value) => [enumName(String(value)), { value }]));
      this.enums.set(name, (type = new GraphQLEnumType({ name, description, values })));
    }
    return type;
  }
}

function memberNames(schema: z.ZodType): string {
  return Object.keys(defOf(schema).shape ?? {}).join(' ');
}
