import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';

/** JavaScript value of a literal in a document. Numbers and member names were checked with the document. */
function literal(node: ValueNode, variables?: Record<string, unknown> | null): unknown {
  switch (node.kind) {
    case Kind.NULL:
      return null;
    case Kind.INT:
    case Kind.FLOAT:
      return Number(node.value);
    case Kind.STRING:
    case Kind.BOOLEAN:
    case Kind.ENUM:
      return node.value;
    case Kind.LIST:
      return node.values.map((value) => literal(value, variables));
    case Kind.OBJECT:
      return Object.fromEntries(node.fields.map((field) => [field.name.value, literal(field.value, variables)]));
    case Kind.VARIABLE:
      return variables && Object.hasOwn(variables, node.name.value) ? variables[node.name.value] : null;
  }
}

/** Any JSON value. A `RawJson` stays as it is, so that the serialiser writes a vendor's own text byte for byte. */
export const JsonScalar = new GraphQLScalarType({
  name: 'JSON',
  description: 'Any JSON value.',
  serialize: (value) => value,
  parseValue: (value) => value,
  parseLiteral: literal,
});

function integer(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  throw new GraphQLError(`Int53 cannot represent this value: ${String(value).slice(0, 40)}`);
}

/** Byte sizes and counts overflow `Int`'s 32 bits. Source: spec rulings, c68. */
export const Int53 = new GraphQLScalarType({
  name: 'Int53',
  description: 'A whole number of at most 53 bits, exact in every JSON reader.',
  serialize: integer,
  parseValue: integer,
  parseLiteral: (node) => integer(node.kind === Kind.INT ? Number(node.value) : undefined),
});

function textScalar(name: string, description: string): GraphQLScalarType {
  const text = (value: unknown) => {
    if (typeof value === 'string') return value;
    throw new GraphQLError(`${name} must be a text`);
  };
  return new GraphQLScalarType({
    name,
    description,
    serialize: text,
    parseValue: text,
    parseLiteral: (node) => text(node.kind === Kind.STRING ? node.value : undefined),
  });
}

/** Texts whose format is checked by the operation's own schema, so that REST and GraphQL refuse with the same text. */
export const Uuid = textScalar('UUID', 'A UUID in its text form.');
export const DateTime = textScalar('DateTime', 'A time in RFC 3339, UTC.');
