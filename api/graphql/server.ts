import { ApolloServer, type ApolloServerOptionsWithGateway } from '@apollo/server';
import { unwrapResolverError } from '@apollo/server/errors';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from '@apollo/server/plugin/disabled';
import { fastifyApolloHandler } from '@as-integrations/fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import { ApiError } from '../../domain/errors';
import { stringify } from '../../domain/json';
import type { Logger } from '../../engines/log/port';
import { toFailure, type Failure } from '../errors';
import type { Limiter } from '../rate-limit';
import { logFacts, logFactsOf, sendContextHeaders, stateOf, type RequestState } from '../request-state';
import { JSON_TYPE } from '../rest';
import { createDocuments, type PreparedDocument } from './documents';
import { createExecutor } from './executor';
import { DEFAULT_LIMITS, type GraphqlLimits } from './limits';

export interface GraphqlOptions {
  schema: GraphQLSchema;
  /** Introspection and suggestions are offered only together with the explorer. Source: spec doc1 §1. */
  playground: boolean;
  limits?: Partial<GraphqlLimits>;
  limiter: Limiter;
  log: Logger;
}

interface Body {
  query?: unknown;
  operationName?: unknown;
  variables?: unknown;
  extensions?: unknown;
}

interface Readable {
  cost: number;
  refusal: ApiError | null;
  document?: PreparedDocument;
  operation_name?: string;
}

/**
 * Serves `POST /v1/gql`. Documents are parsed, measured and validated here, once per text; Apollo finds them in its document store and
 * has them executed through its gateway interface. Documents that keep coming are compiled and run without it.
 */
export async function registerGraphql(
  app: FastifyInstance,
  options: GraphqlOptions,
): Promise<{ stop(): Promise<void> }> {
  const { schema, limiter, log } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const documents = createDocuments(schema, limits, { introspection: options.playground });
  const executor = createExecutor(schema);
  const gateway: NonNullable<ApolloServerOptionsWithGateway<RequestState>['gateway']> = {
    onSchemaLoadOrUpdate(notify) {
      notify({ apiSchema: schema, coreSupergraphSdl: '' });
      return () => undefined;
    },
    load: async () => ({
      executor: async ({ document, request, context }) =>
        (await executor.interpret({
          document,
          operation_name: request.operationName ?? undefined,
          variables: request.variables,
          state: context as unknown as RequestState,
        })) as never,
    }),
    stop: async () => undefined,
  };
  const apollo = new ApolloServer<RequestState>({
    gateway,
    nodeEnv: 'production',
    introspection: options.playground,
    csrfPrevention: false,
    allowBatchedHttpRequests: false,
    persistedQueries: false,
    stopOnTerminationSignals: false,
    stringifyResult: (result) => stringify(result),
    documentStore: {
      get: async (key: string) => documents.byHash(key.slice(key.lastIndexOf(':') + 1)),
      set: async () => undefined,
      delete: async () => true,
    },
    parseOptions: { maxTokens: limits.tokens },
    plugins: [ApolloServerPluginCacheControlDisabled(), ApolloServerPluginLandingPageDisabled()],
    formatError: (formatted, error) => formatError(formatted, error),
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: (message: unknown) => log.warn({}, String(message)),
      error: (message: unknown) => log.error({}, String(message)),
    },
  });
  await apollo.start();
  // Apollo is shown only what it acts on: building its header map from all headers would cost more than running a small query.
  const handler = fastifyApolloHandler(apollo, { context: async (request) => stateOf(request) }) as (
    this: unknown,
    request: FastifyRequest,
    reply: FastifyReply,
  ) => Promise<unknown>;

  app.route({
    method: 'POST',
    url: '/v1/gql',
    config: { limit: 'own', routine: true },
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      const prepared = read(request.body as Body);
      await limiter.count(caller, prepared.cost, reply);
      if (prepared.refusal) throw prepared.refusal;
      const fast = await runCompiled(prepared, request);
      if (fast !== null) {
        sendContextHeaders(reply, context);
        return reply.header('content-type', JSON_TYPE).send(fast);
      }
      const slim = {
        body: request.body,
        method: 'POST',
        headers: SLIM_HEADERS,
        url: '/v1/gql',
        protocol: 'http',
        hostname: 'localhost',
        state: request.state,
      };
      const text = await handler.call(app, slim as unknown as FastifyRequest, reply);
      sendContextHeaders(reply, context);
      return reply.header('content-type', JSON_TYPE).send(text);
    },
    errorHandler: (error, request, reply) => {
      const failure = toFailure(error);
      if (failure.hidden) log.error({ error, ...logFacts(request) }, 'a GraphQL request failed');
      if (failure.retry_after_seconds !== undefined) void reply.header('retry-after', failure.retry_after_seconds);
      void reply
        .code(failure.status)
        .header('content-type', JSON_TYPE)
        .send(JSON.stringify({ errors: [{ message: failure.message, extensions: extensionsOf(failure) }] }));
    },
  });

  /**
   * Documents that were compiled skip Apollo's pipeline, which for a small query costs more than running it; the answer is the same.
   * Null sends the request through Apollo.
   */
  async function runCompiled({ document, operation_name }: Readable, request: FastifyRequest): Promise<string | null> {
    const { variables, extensions } = request.body as Body;
    if (!document?.document || extensions !== undefined) return null;
    const compiled = executor.compiled(document.hash, document.document, operation_name);
    const result = await compiled?.(stateOf(request), (variables ?? undefined) as Record<string, unknown> | undefined);
    if (!result) return null;
    const errors = result.errors?.map((error) => formatError(error.toJSON(), error));
    return stringify(errors && errors.length > 0 ? { errors, data: result.data } : { data: result.data });
  }

  function read(body: Body | undefined): Readable {
    const refusal = (message: string): Readable => ({ cost: 1, refusal: new ApiError('BAD_REQUEST', message) });
    if (Array.isArray(body)) return refusal('Batched GraphQL requests are not supported');
    if (typeof body !== 'object' || body === null)
      return refusal('The request body must be a JSON object with a query');
    if (typeof body.query !== 'string' || body.query.trim() === '') return refusal('query: must be a text');
    const name = body.operationName ?? undefined;
    if (name !== undefined && typeof name !== 'string') return refusal('operationName: must be a text');
    const variables = body.variables ?? {};
    if (typeof variables !== 'object' || Array.isArray(variables)) return refusal('variables: must be an object');
    const document = documents.prepare(body.query);
    return { cost: document.cost(name), refusal: document.refusal, document, operation_name: name };
  }

  function formatError(formatted: GraphQLFormattedError, error: unknown): GraphQLFormattedError {
    const cause = unwrapResolverError(error) as (GraphQLError & { extensions?: { code?: string } }) | Error;
    const failure = cause instanceof ApiError ? toFailure(cause) : ofGraphql(formatted, cause);
    if (failure.hidden) {
      log.error({ error: cause, path: formatted.path, ...logFactsOf(cause) }, 'a GraphQL field failed');
    }
    return {
      message: failure.message,
      ...(formatted.locations && !formatted.path ? { locations: formatted.locations } : {}),
      ...(formatted.path ? { path: formatted.path } : {}),
      extensions: extensionsOf(failure),
    };
  }

  return { stop: () => apollo.stop() };
}

const SLIM_HEADERS = { 'content-type': 'application/json' };

function extensionsOf(failure: Failure): Record<string, unknown> {
  return {
    code: failure.graphql_code ?? failure.code,
    ...(failure.retry_after_seconds === undefined ? {} : { retry_after_seconds: failure.retry_after_seconds }),
    ...failure.details,
  };
}

/** Apollo's own codes, in the words of our table; what is neither is a failure of ours. */
function ofGraphql(formatted: GraphQLFormattedError, cause: unknown): Failure {
  const given = formatted.extensions?.code;
  switch (given) {
    case 'GRAPHQL_VALIDATION_FAILED':
    case 'BAD_USER_INPUT':
      return toFailure(new ApiError('VALIDATION_ERROR', formatted.message));
    case 'GRAPHQL_PARSE_FAILED':
    case 'BAD_REQUEST':
    case 'OPERATION_RESOLUTION_FAILURE':
      return toFailure(new ApiError('BAD_REQUEST', formatted.message));
    default: {
      // Without a path and without a cause of its own it was found before anything ran: variables that do not fit.
      const inner = (cause as { originalError?: unknown }).originalError;
      const before = formatted.path === undefined && (inner === undefined || inner instanceof GraphQLError);
      return toFailure(before ? new ApiError('VALIDATION_ERROR', formatted.message) : cause);
    }
  }
}
