import type { FieldNode, GraphQLField, GraphQLObjectType, GraphQLUnionType } from 'graphql';
import type { RequestContext } from '../../access/authentication/caller';
import type { RequestState } from '../http/requests/request-state';

/** Source of a field's value in the record of an operation: a member's name, or a function of the whole record. */
export type Source = string | ((record: unknown) => unknown);

/** The two steps of a root field's resolver. */
export interface RootSource {
  /**
   * Runs the operation; resolves with its result in the operation's own form.
   * @throws the operation's error, attributed to the request
   */
  answer(raw_arguments: Record<string, unknown>, state: RequestState, node: FieldNode): Promise<unknown>;
  /** Converts the result to its form in GraphQL. */
  show(answered: unknown, context: RequestContext): unknown;
  /** The member of the result that is shown; null for the whole result. */
  member: string | null;
}

/** Discriminator of a union. */
export interface UnionSource {
  /** The member whose value identifies the object type. */
  member: string;
  types: ReadonlyMap<string, GraphQLObjectType>;
}

type Field = GraphQLField<unknown, unknown>;

/** Undefined for a field that was not made from our declarations. */
export const sourceOf = ({ extensions }: Field): Source | undefined => extensions['source'] as Source | undefined;
export const rootSourceOf = ({ extensions }: Field): RootSource | undefined =>
  extensions['root'] as RootSource | undefined;
export const unionSourceOf = ({ extensions }: GraphQLUnionType): UnionSource | undefined =>
  extensions['source'] as UnionSource | undefined;
