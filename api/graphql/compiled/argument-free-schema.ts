import {
  GraphQLObjectType,
  GraphQLSchema,
  isIntrospectionType,
  isObjectType,
  type GraphQLFieldConfigMap,
} from 'graphql';
import type { RequestState } from '../../http/requests/request-state';

/** Context that compiled functions pass to the resolvers of {@link withoutArguments}. */
export interface CompiledContext {
  state: RequestState;
  /** Arguments of each root field, by its response name. */
  args: ReadonlyMap<string | number, Record<string, unknown>>;
  /** Results of the operations by the same names, when the operations have run already. */
  answered?: ReadonlyMap<string | number, Promise<unknown>>;
}

/**
 * Copy of the schema for the compiler, with fields without arguments: the resolvers find them in the context, as
 * graphql-js reads them. The compiler itself reads literals before variables are known, so that variables inside a
 * scalar's literal would be lost.
 */
export function withoutArguments(schema: GraphQLSchema): GraphQLSchema {
  const config = schema.toConfig();
  const roots = [config.query, config.mutation];
  for (const type of config.types) {
    if (!isObjectType(type) || isIntrospectionType(type) || roots.includes(type)) continue;
    const field = Object.values(type.getFields()).find(({ args, resolve }) => args.length > 0 || resolve);
    if (field)
      throw new Error(`only fields of the roots take arguments and resolve, and ${type.name}.${field.name} does`);
  }
  return new GraphQLSchema({
    ...config,
    query: config.query && root(config.query),
    mutation: config.mutation && root(config.mutation),
    types: config.types.filter((type) => !roots.includes(type as GraphQLObjectType)),
    assumeValid: true,
  });
}

function root(type: GraphQLObjectType): GraphQLObjectType {
  const fields: GraphQLFieldConfigMap<unknown, CompiledContext> = {};
  for (const field of Object.values(type.getFields())) {
    fields[field.name] = {
      type: field.type,
      resolve(source, _none, { state, args, answered }, info) {
        const { key } = info.path;
        return answered ? answered.get(key) : field.resolve!(source, args.get(key)!, state, info);
      },
    };
  }
  return new GraphQLObjectType({ name: type.name, fields });
}
