import { ApolloServer, type ApolloServerOptionsWithGateway } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginLandingPageDisabled,
} from '@apollo/server/plugin/disabled';
import { fastifyApolloHandler } from '@as-integrations/fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ExecutionResult, GraphQLSchema } from 'graphql';
import type { RequestContext } from '../../access/authentication/caller';
import { stringify } from '../../lib/json/raw-json';
import type { Logger } from '../../engines/log/port';
import { toFailure } from '../http/answers/errors';
import { GRAPHQL, type LogFailure } from '../http/answers/failure-log';
import type { Limiter } from '../http/rate-limit';
import { logFacts, noteFailure, sendContextHeaders, stateOf, type RequestState } from '../http/requests/request-state';
import { JSON_TYPE } from '../rest/rest';
import type { SendText } from '../http/answers/slow-readers';
import { AnswerTooLarge, holdText } from '../http/answers/answer-size';
import { pageBytes } from './limits/answer-size';
import { createAnswers, refusalText } from './answers';
import { createDocuments, type ReadyDocument } from './compiled/documents';
import { createExecutor } from './compiled/executor';
import { DEFAULT_LIMITS, type GraphqlLimits } from './limits/limits';
import { createPassing } from './in-flight-documents';
import { RefusedDocument } from './refusals';
import { readRequest, type GraphqlRequest } from './request';

export interface GraphqlOptions {
  schema: GraphQLSchema;
  /** Introspection and suggestions are offered only together with the explorer. Source: spec doc1 §1. */
  playground: boolean;
  limits?: Partial<GraphqlLimits> | undefined;
  sendText: SendText;
  limiter: Limiter;
  log: Logger;
  logFailure: LogFailure;
}

/**
 * Serves `POST /v1/gql`. Documents are parsed, measured and validated here, once per text; Apollo finds them in its
 * document store and has them executed through its gateway interface. Frequent documents are compiled and run without
 * Apollo.
 */
export async function registerGraphql(
  app: FastifyInstance,
  options: GraphqlOptions,
): Promise<{ stop(): Promise<void> }> {
  const { schema, limiter, log, logFailure } = options;
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const documents = createDocuments(schema, limits, { introspection: options.playground });
  const executor = createExecutor(schema, documents, limits);
  /** Answers that graphql-js made and that are too large to be sent. */
  const too_large = new WeakMap<RequestContext, AnswerTooLarge>();
  const answers = createAnswers(logFailure);
  const textOf = (result: string | ExecutionResult) => (typeof result === 'string' ? result : answers.textOf(result));
  const passing = createPassing();
  const gateway: NonNullable<ApolloServerOptionsWithGateway<RequestState>['gateway']> = {
    onSchemaLoadOrUpdate(notify) {
      notify({ apiSchema: schema, coreSupergraphSdl: '' });
      return () => undefined;
    },
    load: async () => ({
      executor: async ({ document, request, context }) => {
        const state = context as unknown as RequestState;
        const operation_name = request.operationName ?? undefined;
        try {
          return (await executor.interpret({ document, operation_name, variables: request.variables, state })) as never;
        } catch (error) {
          if (!(error instanceof AnswerTooLarge)) throw error;
          too_large.set(state.context, error);
          return { data: null };
        }
      },
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
  // Apollo gets only the headers that it uses: a map of all headers would cost more than running a small query.
  const handler = fastifyApolloHandler(apollo, { context: async (request) => stateOf(request) }) as (
    this: unknown,
    request: FastifyRequest,
    reply: FastifyReply,
  ) => Promise<unknown>;

  app.route({
    method: 'POST',
    url: '/v1/gql',
    // The first unit is counted before the body is read, so that faulty requests count as well.
    config: { routine: true },
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      const asked = readRequest(request.body);
      if (!documents.has(asked.query)) await limiter.countCaller(caller, newDocumentUnits(asked.query), reply);
      const document = documents.prepare(asked.query);
      if (document.refusal) throw new RefusedDocument(document.refusal);
      const operation = document.choose(asked.operation_name);
      await limiter.countCaller(caller, operation.cost - 1, reply);
      for (const { name, per_minute, calls } of operation.limited) {
        await limiter.countCalls(caller, name, per_minute, calls, reply);
      }
      context.page_bytes = pageBytes(operation.cost, limits.answer_bytes);
      const fast = await executor.runCompiled(document, operation, asked.variables, stateOf(request));
      const text = fast ? textOf(fast) : await throughApollo(asked, document, request, reply);
      sendContextHeaders(reply, context);
      const held = holdText(text, limits.answer_bytes);
      return options.sendText(reply.header('content-type', JSON_TYPE), held, operation.node.operation === 'query');
    },
    errorHandler: (error, request, reply) => {
      const failure = toFailure(error);
      logFailure(
        error,
        failure,
        { route: GRAPHQL, facts: { error, ...logFacts(request) } },
        'a GraphQL request failed',
      );
      if (failure.hidden) noteFailure(request);
      if (failure.retry_after_seconds !== undefined) void reply.header('retry-after', failure.retry_after_seconds);
      void reply.code(failure.status).header('content-type', JSON_TYPE).send(refusalText(error, failure));
    },
  });

  async function throughApollo(
    { query, operation_name, variables }: GraphqlRequest,
    { document }: ReadyDocument,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<string> {
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
      const text = await handler.call(app, slim as unknown as FastifyRequest, reply);
      const refusal = too_large.get(stateOf(request).context);
      if (refusal) throw refusal;
      return text as string;
    } finally {
      left();
    }
  }

  return { stop: () => apollo.stop() };
}

/** Characters of a new document per unit of its cost. */
const CHARACTERS_PER_UNIT = 1024;
/** Within the bound of tokens the rest of a document is texts and blanks, which are read fast. */
const MAX_DOCUMENT_UNITS = 10;

const newDocumentUnits = ({ length }: string): number =>
  Math.min(MAX_DOCUMENT_UNITS, Math.floor(length / CHARACTERS_PER_UNIT));

const SLIM_HEADERS = { 'content-type': 'application/json' };
