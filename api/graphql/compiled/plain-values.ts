import {
  GraphQLBoolean,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  GraphQLString,
  isNonNullType,
  Kind,
  typeFromAST,
  type FieldNode,
  type GraphQLField,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { DateTime, Uuid } from '../scalars';

type Values = Record<string, unknown>;
type Variables = Readonly<Record<string, unknown>>;

const isText = (value: unknown) => typeof value === 'string';

/** Tests by scalar for values that graphql-js leaves unchanged. */
const PLAIN = new Map<unknown, (value: unknown) => boolean>([
  [GraphQLString, isText],
  [GraphQLID, isText],
  [Uuid, isText],
  [DateTime, isText],
  [GraphQLInt, (value) => typeof value === 'number' && (value | 0) === value],
  [GraphQLFloat, (value) => Number.isFinite(value)],
  [GraphQLBoolean, (value) => typeof value === 'boolean'],
]);

/**
 * Reads the variables of an operation when graphql-js would leave each unchanged, at a fraction of its cost. Null when
 * graphql-js must read them: a variable is of another type, has a default, or does not fit.
 */
export function plainVariables(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
): (raw_variables: Variables) => Values | null {
  const known = variableDefinitions.map(({ variable, type, defaultValue }) => {
    const declared = typeFromAST(schema, type as never);
    const required = isNonNullType(declared);
    const plain = defaultValue ? undefined : PLAIN.get(isNonNullType(declared) ? declared.ofType : declared);
    return { name: variable.name.value, required, plain };
  });
  if (!known.every(({ plain }) => plain)) return () => null;
  return (raw_variables) => {
    const values: Values = {};
    for (const { name, required, plain } of known) {
      if (!Object.hasOwn(raw_variables, name)) {
        if (required) return null;
        continue;
      }
      const value = raw_variables[name];
      if (!plain!(value)) return null;
      values[name] = value;
    }
    return values;
  };
}

/** Reads the arguments of a field when each is a variable or absent; null when graphql-js must read them. */
export function plainArguments(
  field: GraphQLField<unknown, unknown>,
  { arguments: nodes = [] }: FieldNode,
): (variables: Variables) => Values | null {
  const known: { name: string; variable: string }[] = [];
  for (const { name, type, defaultValue } of field.args) {
    const value = nodes.find((node) => node.name.value === name)?.value;
    if (defaultValue !== undefined || (value ? value.kind !== Kind.VARIABLE : isNonNullType(type))) return () => null;
    if (value?.kind === Kind.VARIABLE) known.push({ name, variable: value.name.value });
  }
  return (variables) => {
    const values: Values = {};
    for (const { name, variable } of known) {
      const value = Object.hasOwn(variables, variable) ? variables[variable] : null;
      if (value === null || value === undefined) return null;
      values[name] = value;
    }
    return values;
  };
}
