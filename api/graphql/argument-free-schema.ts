import {
  GraphQLObjectType,
  GraphQLSchema,
  isIntrospectionType,
  isObjectType,
  type GraphQLFieldConfigMap,
} from 'graphql';
import type { RequestState } from '../request-state';

/** What compiled functions hand to the resolvers of {@link withoutArguments}. */
export interface CompiledContext {
  state: RequestState;
  /** Arguments of each field of the root, by the name that it answers under. */
  args: ReadonlyMap<string | number, Record<string, unknown>>;
  /** Where the operations have been run: what they answered, by the same names. */
  answered?: ReadonlyMap<string | number, Promise<unknown>>;
}

/**
 * The same schema for the compiler, whose fields take no arguments: their resolvers find them in the context, as
 * graphql-js reads them. The compiler reads literals when it compiles, before there are variables, so that those inside
 * a scalar's literal would be lost.
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
