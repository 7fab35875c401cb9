import type { FieldNode, GraphQLField, GraphQLObjectType, GraphQLUnionType } from 'graphql';
import type { RequestContext } from '../../access/caller';
import type { RequestState } from '../request-state';

/** Where a field's value stands in what an operation answers: in the member of that name, or it is made of all. */
export type Source = string | ((record: unknown) => unknown);

/** How a field of the root is answered, beside its resolver, which does both steps. */
export interface RootSource {
  /**
   * What its operation answers, in the operation's own words.
   * @throws what the operation throws, blamed on the request
   */
  answer(given: Record<string, unknown>, state: RequestState, node: FieldNode): Promise<unknown>;
  /** The same as GraphQL shows it. */
  show(answered: unknown, context: RequestContext): unknown;
  /** The member of the answer that is shown; null where it is shown whole. */
  member: string | null;
}

/** How the objects of a union are told apart. */
export interface UnionSource {
  /** The member whose value says which one it is. */
  member: string;
  types: ReadonlyMap<string, GraphQLObjectType>;
}

type Field = GraphQLField<unknown, unknown>;

/** Undefined for what none of our declarations made. */
export const sourceOf = ({ extensions }: Field): Source | undefined => extensions['source'] as Source | undefined;
export const rootSourceOf = ({ extensions }: Field): RootSource | undefined =>
  extensions['root'] as RootSource | undefined;
export const unionSourceOf = ({ extensions }: GraphQLUnionType): UnionSource | undefined =>
  extensions['source'] as UnionSource | undefined;
