import { ApiError } from '../../kernel/errors';

/** The parsed body of a request. */
export interface GraphqlRequest {
  query: string;
  operation_name: string | undefined;
  variables: Record<string, unknown>;
}

/** Longest name of an operation, in characters. */
const MAX_OPERATION_NAME = 255;

const malformed = (message: string) => new ApiError('BAD_REQUEST', message);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Reads a JSON body as a GraphQL request. An empty `operationName`, which explorers send, counts as absent.
 * @throws ApiError BAD_REQUEST
 */
export function readRequest(body: unknown): GraphqlRequest {
  if (Array.isArray(body)) throw malformed('Batched GraphQL requests are not supported');
  if (!isObject(body)) throw malformed('The request body must be a JSON object with a query');
  const { query, operationName: name = null, variables = null, extensions = null } = body;
  if (extensions !== null && !isObject(extensions)) throw malformed('extensions: must be an object');
  if (extensions?.persistedQuery !== undefined) {
    // The code on which clients that send only a hash first send the text.
    throw new ApiError('BAD_REQUEST', 'Persisted queries are not supported: send the whole document as query', {
      graphql_code: 'PERSISTED_QUERY_NOT_SUPPORTED',
    });
  }
  if (typeof query !== 'string' || query.trim() === '') throw malformed('query: must be a text');
  if (name !== null && typeof name !== 'string') throw malformed('operationName: must be a text');
  if (name !== null && name.length > MAX_OPERATION_NAME) {
    throw malformed(`operationName: must have at most ${MAX_OPERATION_NAME} characters`);
  }
  if (variables !== null && !isObject(variables)) throw malformed('variables: must be an object');
  return { query, operation_name: name === null || name === '' ? undefined : name, variables: variables ?? {} };
}
