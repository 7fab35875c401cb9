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
  compiled: Compiled | null;
}

export interface Executor {
  /** Executes with graphql-js. */
  interpret(request: ExecutionRequest): Promise<ExecutionResult> | ExecutionResult;
  /** The function compiled for a document that keeps coming; null until it has come often enough. Counts this coming. */
  compiled(hash: string, document: DocumentNode, operation_name: string | undefined): Compiled | null;
}

/** Null when the variables do not fit: nothing has run, and graphql-js is to word the refusal as it did before compilation. */
export type Compiled = (
  state: RequestState,
  variables: Record<string, unknown> | undefined,
) => Promise<ExecutionResult | null> | ExecutionResult | null;

/** Executes documents: with graphql-js at first, with a function compiled for the document once it keeps coming. */
export function createExecutor(schema: GraphQLSchema): Executor {
  const entries = new LRUCache<string, Entry>({ max: MAX_COMPILED });
  return {
    interpret: (request) =>
      execute({
        schema,
        document: request.document,
        operationName: request.operation_name,
        variableValues: request.variables,
        contextValue: request.state,
      }) as Promise<ExecutionResult> | ExecutionResult,
    compiled(hash, document, operation_name) {
      const key = operation_name === undefined ? hash : `${hash} ${operation_name}`;
      let entry = entries.get(key);
      if (!entry) entries.set(key, (entry = { hits: 0, compiled: null }));
      entry.hits += 1;
      if (entry.hits === COMPILE_AFTER) {
        const query = compileQuery(schema, document, operation_name);
        if (isCompiledQuery(query)) entry.compiled = runner(query);
      }
      return entry.compiled;
    },
  };
}

function runner(compiled: CompiledQuery): Compiled {
  return (state, variables) => {
    const result = compiled.query(undefined, state, variables ?? {});
    return result instanceof Promise ? result.then(settle) : settle(result);
  };
}

function settle(result: ExecutionResult): ExecutionResult | null {
  return result.data === undefined ? null : withOwnErrors(result);
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
