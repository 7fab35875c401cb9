import { execute, GraphQLError, type DocumentNode, type ExecutionResult, type GraphQLSchema } from 'graphql';
import { compileQuery, isCompiledQuery, type CompiledQuery } from 'graphql-jit';
import { LRUCache } from 'lru-cache';
import type { RequestState } from '../request-state';

export interface ExecutionRequest {
  document: DocumentNode;
  operation_name: string | undefined;
  variables: Record<string, unknown> | undefined;
  state: RequestState;
}

/** Compiling costs milliseconds: a document must have come this often before it is worth it. */
const COMPILE_AFTER = 3;
/** Compiled functions kept; the least recently used goes first. */
const MAX_COMPILED = 500;

interface Entry {
  hits: number;
  compiled: CompiledQuery | null;
}

/** Executes documents: with graphql-js at first, with a function compiled for the document once it keeps coming. */
export function createExecutor(schema: GraphQLSchema) {
  const entries = new LRUCache<string, Entry>({ max: MAX_COMPILED });
  return (hash: string, request: ExecutionRequest): Promise<ExecutionResult> | ExecutionResult => {
    const key = request.operation_name === undefined ? hash : `${hash} ${request.operation_name}`;
    let entry = entries.get(key);
    if (!entry) entries.set(key, (entry = { hits: 0, compiled: null }));
    entry.hits += 1;
    if (entry.hits === COMPILE_AFTER) {
      const compiled = compileQuery(schema, request.document, request.operation_name);
      if (isCompiledQuery(compiled)) entry.compiled = compiled;
    }
    if (!entry.compiled) return interpret(request);
    const result = entry.compiled.query(undefined, request.state, request.variables ?? {});
    if (result instanceof Promise) return result.then(withOwnErrors);
    // Variables that do not fit: nothing has run, and graphql-js words the refusal as it did before the document was compiled.
    return result.data === undefined ? interpret(request) : withOwnErrors(result);
  };

  function interpret(request: ExecutionRequest): Promise<ExecutionResult> | ExecutionResult {
    return execute({
      schema,
      document: request.document,
      operationName: request.operation_name,
      variableValues: request.variables,
      contextValue: request.state,
    }) as Promise<ExecutionResult> | ExecutionResult;
  }
}

/** The compiler makes errors of a class of its own; the rest of the house knows graphql-js's. */
function withOwnErrors(result: ExecutionResult): ExecutionResult {
  if (!result.errors || result.errors.length === 0) return result;
  const errors = result.errors.map((error) =>
    error instanceof GraphQLError && error.constructor === GraphQLError
      ? error
      : new GraphQLError(error.message, {
          nodes: error.nodes,
          path: error.path,
          originalError: error.originalError,
          extensions: error.extensions,
        }),
  );
  return { ...result, errors };
}
