import {
  GraphQLBoolean,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  GraphQLSchema,
  GraphQLString,
  type GraphQLArgumentConfig,
  type GraphQLFieldConfig,
} from 'graphql';
import { chosenText, type Guard } from '../../access/authorization/guards';
import type { Operation } from '../../app/operation';
import type { PageKind, Shown } from '../../kernel/operations/pages';
import type { Prepared } from '../rest/invoke';
import { attachContext, type RequestState } from '../http/requests/request-state';
import { shapeOf, unwrap } from '../openapi/schema-shape';
import { pascalCase } from './names';
import { refuseDepth } from './limits/argument-depth';
import { type Convert, inputConverter, type InputMember } from './converters';
import type { RootSource, Source } from './sources';
import { type OutputType, TypeRegistry } from './types';

type Field = GraphQLFieldConfig<unknown, RequestState>;

/**
 * Builds the schema of all operations: queries and mutations, with their guards and validation inside the root
 * resolvers.
 */
export function buildGraphqlSchema(prepared: readonly Prepared[]): GraphQLSchema {
  const renamed = new Map<string, Readonly<Record<string, string>>>();
  for (const { operation } of prepared) {
    const id = unwrap(elementOf(operation), 'output').meta.id;
    if (operation.graphql?.renamed && id) renamed.set(id, { ...renamed.get(id), ...operation.graphql.renamed });
  }
  const types = new TypeRegistry(renamed);
  const pages = new Map<string, GraphQLObjectType>();
  const roots: Record<Operation['kind'], Record<string, Field>> = { query: {}, command: {} };
  for (const one of prepared) {
    if (one.operation.graphql === null) continue;
    const root = roots[one.operation.kind];
    if (root[one.operation.name]) throw new Error(`two operations are both named ${one.operation.name}`);
    root[one.operation.name] = field(one, types, pages);
  }
  return new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: roots.query }),
    mutation:
      Object.keys(roots.command).length > 0 ? new GraphQLObjectType({ name: 'Mutation', fields: roots.command }) : null,
  });
}

function elementOf(operation: Operation) {
  const inner = unwrap(operation.output, 'output');
  return inner.def.type === 'array' ? inner.def.element! : operation.output;
}

function field(
  { operation, ...prepared }: Prepared,
  types: TypeRegistry,
  pages: Map<string, GraphQLObjectType>,
): Field {
  const { args, toInput } = argumentsOf(operation, types);
  const { type, convert, member } = resultOf(operation, types, pages);
  const root: RootSource = {
    member,
    async answer(raw_arguments, { caller, context }, node) {
      try {
        const admitted = prepared.admit(caller, {
          input: () => {
            refuseDepth(node, raw_arguments);
            return toInput(raw_arguments) as Record<string, unknown>;
          },
          member: (name) => (toInput(raw_arguments) as Record<string, unknown>)[name],
        });
        const admission = admitted instanceof Promise ? await admitted : admitted;
        return await prepared.run(admission, context);
      } catch (error) {
        attachContext(error, context);
        throw error;
      }
    },
    show(answered, context) {
      try {
        return convert && answered !== null && answered !== undefined ? convert(answered) : answered;
      } catch (error) {
        attachContext(error, context);
        throw error;
      }
    },
  };
  return {
    type,
    args,
    description: `${operation.summary}${guardText(operation)}`,
    extensions: { per_minute: operation.per_minute, root },
    async resolve(_source, raw_arguments, state, { fieldNodes }) {
      return root.show(await root.answer(raw_arguments, state, fieldNodes[0]!), state.context);
    },
  };
}

function guardName(guard: Guard): string {
  if (guard.kind === 'feature') return guard.flag;
  if (guard.kind === 'permission_by') return chosenText(guard);
  return 'permission' in guard ? guard.permission : guard.kind;
}

function guardText(operation: Operation): string {
  const needs = operation.guard.flatMap((guard) =>
    guard.kind === 'public' || guard.kind === 'account' ? [] : [guardName(guard)],
  );
  return needs.length > 0 ? `\n\nNeeds: ${needs.join(', ')}` : '';
}

function argumentsOf(
  operation: Operation,
  types: TypeRegistry,
): { args: Record<string, GraphQLArgumentConfig>; toInput: Convert } {
  const shape = shapeOf(operation.input, 'input');
  const shaped = operation.graphql ?? {};
  const under = shaped.argument ?? 'flat';
  const owner = pascalCase(operation.name);
  if (under === 'flat') {
    const members = types.members(shape, owner);
    return { args: asArguments(members), toInput: inputConverter(members) };
  }
  const apart = new Set(shaped.flat_arguments ?? []);
  const pick = (wanted: boolean) =>
    Object.fromEntries(Object.entries(shape).filter(([name]) => apart.has(name) === wanted));
  const flat = types.members(pick(true), owner);
  const { meta } = unwrap(operation.input, 'input');
  const name = meta.id ?? `${owner}${under === 'filter' ? 'FilterInput' : 'Input'}`;
  const nested = types.inputObject(name, pick(false), meta.description);
  const flatInput = inputConverter(flat);
  return {
    args: {
      ...asArguments(flat),
      [under]: { type: nested.required ? new GraphQLNonNull(nested.type as never) : nested.type },
    },
    toInput(raw_arguments) {
      const { [under]: inner, ...others } = raw_arguments as Record<string, unknown>;
      const input = flatInput(others) as Record<string, unknown>;
      return inner === undefined || inner === null ? input : Object.assign(input, nested.convert!(inner));
    },
  };
}

function asArguments(members: ReadonlyMap<string, InputMember>): Record<string, GraphQLArgumentConfig> {
  return Object.fromEntries([...members].map(([name, { type, description }]) => [name, { type, description }]));
}

function resultOf(
  operation: Operation,
  types: TypeRegistry,
  pages: Map<string, GraphQLObjectType>,
): OutputType & Pick<RootSource, 'member'> {
  const owner = pascalCase(operation.name);
  const kind = operation.pages;
  if (!kind) return { ...types.output(operation.output, `${owner}Result`), member: null };
  const item = types.output(operation.output, `${owner}Item`);
  const toItem = item.convert;
  const toItems = (items: readonly unknown[]) =>
    toItem ? items.map((one) => (one === null ? one : toItem(one))) : items;
  const items = new GraphQLNonNull(new GraphQLList(item.type));
  if (kind.type === undefined) {
    return { type: items, convert: (shown) => toItems((shown as Shown).items), member: 'items' };
  }
  let type = pages.get(kind.type);
  if (!type) {
    const fields = { items: { type: items, ...shownAs('items') }, ...BESIDE_ITEMS[kind.kind] };
    type = new GraphQLObjectType({ name: kind.type, fields });
    pages.set(kind.type, type);
  }
  return {
    type: new GraphQLNonNull(type),
    member: null,
    convert(result) {
      const { items: found, next, prev, ...counts } = result as Shown;
      return { items: toItems(found), ...counts, pages: pagesOf(counts), nextCursor: next, prevCursor: prev };
    },
  };
}

/** Number of pages; undefined for kinds of pages without a total. */
function pagesOf({ total, limit }: Pick<Shown, 'total' | 'limit'>): number | undefined {
  return total === undefined || limit === undefined ? undefined : Math.max(1, Math.ceil(total / limit));
}

const shownAs = (source: Source) => ({ extensions: { source } });
const count = (source: Source) => ({ type: new GraphQLNonNull(GraphQLInt), ...shownAs(source) });
/** Fields of a page besides its items. */
const BESIDE_ITEMS: Readonly<Record<PageKind['kind'], Record<string, GraphQLFieldConfig<unknown, unknown>>>> = {
  numbered: {
    total: count('total'),
    page: count('page'),
    limit: count('limit'),
    pages: count((shown) => pagesOf(shown as Shown)),
    partial: { type: GraphQLBoolean, description: 'True when `total` is a lower bound.', ...shownAs('partial') },
    nextCursor: {
      type: GraphQLString,
      description: 'The rest of a page that its bytes ended; null where the page is whole.',
      ...shownAs('next'),
    },
  },
  offset: { total: count('total') },
  cursor: { nextCursor: { type: GraphQLString, description: 'Null at the end.', ...shownAs('next') } },
  timeline: {
    nextCursor: { type: GraphQLString, description: 'To older rows; null at the end.', ...shownAs('next') },
    prevCursor: { type: GraphQLString, description: 'To newer rows; null of a page without rows.', ...shownAs('prev') },
  },
  whole: {},
};
