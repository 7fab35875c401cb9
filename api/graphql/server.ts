import { ApolloServer, type ApolloServerOptionsWithGateway } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from '@apollo/server/plugin/disabled';
import { fastifyApolloHandler } from '@as-integrations/fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import { stringify } from '../../kernel/raw-json';
import type { Logger } from '../../engines/log/port';
import { toFailure } from '../errors';
import type { Limiter } from '../rate-limit';
import { logFacts, sendContextHeaders, stateOf, type RequestState } from '../request-state';
import { JSON_TYPE } from '../rest';
import { createAnswers, refusalText } from './answers';
import { createDocuments, type ReadyDocument } from './documents';
import { createExecutor } from './executor';
import { DEFAULT_LIMITS, type GraphqlLimits } from './limits';
import { createPassing } from './passing';
import { RefusedDocument } from './refusals';
import { readRequest, type GraphqlRequest } from './request';

export interface GraphqlOptions {
  schema: GraphQLSchema;
  /** Introspection and suggestions are offered only together with the explorer. Source: spec doc1 §1. */
  playground: boolean;
  limits?: Partial<GraphqlLimits>;
  limiter: Limiter;
  log: Logger;
}

/**
 * Serves `POST /v1/gql`. Documents are parsed, measured and validated here, once per text; Apollo finds them in its
 * document store and has them executed through its gateway interface. Documents that keep coming are compiled and run
 * without it.
 */
export async function registerGraphql(
  app: FastifyInstance,
  options: GraphqlOptions,
): Promise<{ stop(): Promise<void> }> {
  const { schema, limiter, log } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const documents = createDocuments(schema, limits, { introspection: options.playground });
  const executor = createExecutor(schema, documents);
  const answers = createAnswers(log);
  const textOf = (result: string | ExecutionResult) => (typeof result === 'string' ? result : answers.textOf(result));
  const passing = createPassing();
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
      get: async (key: string) => passing.get(key.slice(key.lastIndexOf(':') + 1)),
      set: async () => undefined,
      delete: async () => true,
    },
    parseOptions: { maxTokens: limits.tokens },
    plugins: [ApolloServerPluginCacheControlDisabled(), ApolloServerPluginLandingPageDisabled()],
    formatError: answers.formatError,
    logger: {
      debug: () => undefined,
      info: () => undefined,
      warn: (message: unknown) => log.warn({}, String(message)),
      error: (message: unknown) => log.error({}, String(message)),
    },
  });
  await apollo.start();
  // Apollo is shown only what it acts on: building its header map from all headers would cost more than running a small
  // query.
  const handler = fastifyApolloHandler(apollo, { context: async (request) => stateOf(request) }) as (
    this: unknown,
    request: FastifyRequest,
    reply: FastifyReply,
  ) => Promise<unknown>;

  app.route({
    method: 'POST',
    url: '/v1/gql',
    // The first unit is counted before the body is read, so that whatever is wrong with a request has been paid for.
    config: { routine: true },
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      const asked = readRequest(request.body);
      const document = documents.prepare(asked.query);
      if (document.refusal) throw new RefusedDocument(document.refusal);
      const operation = document.choose(asked.operation_name);
      await limiter.count(caller, operation.cost - 1, reply);
      for (const { name, per_minute, calls } of operation.limited) {
        await limiter.countCalls(caller, name, per_minute, calls, reply);
      }
      const fast = await executor.runCompiled(document, operation, asked.variables, stateOf(request));
      const text = fast ? textOf(fast) : await throughApollo(asked, document, request, reply);
      sendContextHeaders(reply, context);
      return reply.header('content-type', JSON_TYPE).send(text);
    },
    errorHandler: (error, request, reply) => {
      const failure = toFailure(error);
      if (failure.hidden) log[failure.severity]({ error, ...logFacts(request) }, 'a GraphQL request failed');
      if (failure.retry_after_seconds !== undefined) void reply.header('retry-after', failure.retry_after_seconds);
      void reply.code(failure.status).header('content-type', JSON_TYPE).send(refusalText(error, failure));
    },
  });

  async function throughApollo(
    { query, operation_name, variables }: GraphqlRequest,
    { document }: ReadyDocument,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<unknown> {
    const left = passing.enter(query, document);
    try {
      const slim = {
        body: { query, variables, ...(operation_name !== undefined && { operationName: operation_name }) },
        method: 'POST',
        headers: SLIM_HEADERS,
        url: '/v1/gql',
        protocol: 'http',
        hostname: 'localhost',
        state: request.state,
      };
      return await handler.call(app, slim as unknown as FastifyRequest, reply);
    } finally {
      left();
    }
  }

  return { stop: () => apollo.stop() };
}

const SLIM_HEADERS = { 'content-type': 'application/json' };
