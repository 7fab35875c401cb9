import type { Operation } from '../../app/operation';

/** An address without the names of its path members, because documents name them in several ways. */
export const nameless = (at: string): string => at.replace(/\{\w+\}/g, '{}');

/** Address of the REST route, as checklists write it (`GET /v1/api-keys`); null without a route. */
export const restName = ({ rest }: Operation): string | null => (rest ? `${rest.method} ${rest.path}` : null);

/** Address of the GraphQL field, as checklists write it (`query userApiKeys`); null without a field. */
export const graphqlName = ({ kind, name, graphql }: Operation): string | null =>
  graphql === null ? null : `${kind === 'query' ? 'query' : 'mutation'} ${name}`;

/** Addresses of an operation on both protocols, without the names of path members. */
export const namesOf = (operation: Operation): string[] =>
  [restName(operation), graphqlName(operation)].filter((at) => at !== null).map(nameless);
