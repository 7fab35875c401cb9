import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { createCounts } from '../access/counts';
import type { Operation } from '../access/operation';
import type { Services } from '../access/services';
import type { Settings } from '../kernel/settings';
import { ApiError } from '../kernel/errors';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import { NO_TRACING, type Tracing } from '../engines/tracing/port';
import type { RateLimits } from '../engines/rate-limits/port';
import type { Family } from '../realtime/runtime/family';
import { asyncApiDocument } from './asyncapi';
import { acceptJson } from './bodies';
import { challengeOf } from './challenges';
import { registerDocs } from './docs';
import { restBody, toFailure } from './errors';
import { buildGraphqlSchema } from './graphql/schema';
import type { GraphqlLimits } from './graphql/limits';
import { registerGraphql } from './graphql/server';
import { registerHealth, type HealthCheck } from './health';
import { createHttpHooks } from './http-hooks';
import { createIdempotency, type LockHolder } from './idempotency';
import { prepare } from './invoke';
import { MAX_BODY_BYTES } from './json-body';
import { originOf } from './links';
import { openApiDocument } from './openapi';
import { createLimiter } from './rate-limit';
import { acceptForms } from './oauth-bodies';
import { originForm } from './request-head';
import { logFacts, type ResolveCaller } from './request-state';
import { JSON_TYPE, registerRest } from './rest';
import { registerSecurityTxt } from './security-txt';
import { answerUnrouted } from './unrouted';
import { acceptMultipart } from './uploads';
import { serveUpgrades, type UpgradeHandler } from './upgrades';
import type { WebhookRoute } from '../ingest/runtime/webhook';
import { registerWebhooks } from './webhooks';

export interface ApiDeps {
  settings: Settings;
  operations: readonly Operation[];
  services: Services;
  resolveCaller: ResolveCaller;
  /** This process, as others see that it lives. */
  holder: LockHolder;
  rate_limits: RateLimits;
  webhooks: readonly WebhookRoute[];
  health: { checks: readonly HealthCheck[]; websocket(): { sessions: number; channels: number } };
  metrics: Metrics;
  /** Default: off. */
  tracing?: Tracing;
  log: Logger;
  version: string;
  graphql?: { limits?: Partial<GraphqlLimits> };
  /** Every family of channels, for the documents. */
  channels?: readonly Family[];
  /** Takes the upgrades to WebSockets; absent on a node without that role. */
  websocket?: UpgradeHandler | undefined;
  /** Routes that are no operations (`.well-known`, file transfer); registered last, before the server is ready. */
  extend?(app: FastifyInstance): Promise<void> | void;
}

export interface Api {
  app: FastifyInstance;
  /** Serves on the settings' host and port; resolves with the origin, `http://127.0.0.1:7070`. */
  listen(): Promise<string>;
  /** Refuses new requests, finishes those under way, and closes. */
  close(): Promise<void>;
}

/**
 * The front door: derives REST, GraphQL, SDL and OpenAPI from the operations and serves them with webhooks, health and
 * documents. A node answers 404 to the routes of roles that it does not have. Design §4, §9.
 */
export async function createApi(deps: ApiDeps): Promise<Api> {
  const { settings, log, metrics } = deps;
  const app = Fastify({
    logger: false,
    trustProxy: settings.trusted_proxies.length > 0 ? [...settings.trusted_proxies] : false,
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: false },
    requestTimeout: 60_000,
    // Answered by a body of ours instead.
    http: { requireHostHeader: false },
    rewriteUrl: originForm,
    // What still comes in while the server closes is answered like any other: Fastify's own 503 tells no vendor when to
    // come again.
    return503OnClosing: false,
    genReqId: () => '',
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => sendFailure(error, request as FastifyRequest, reply as FastifyReply),
  });
  app.decorateRequest('state', null);
  app.decorateRequest('correlation_id', '');
  app.decorateRequest('span', null);

  const limiter = createLimiter(createCounts({ limits: deps.rate_limits, log, metrics }));
  const hooks = createHttpHooks({
    settings,
    log,
    metrics,
    tracing: deps.tracing ?? NO_TRACING,
    limiter,
    resolveCaller: deps.resolveCaller,
  });
  // Before the first route, which keeps the handler that it finds.
  app.setErrorHandler((error: FastifyError, request, reply) => sendFailure(error, request, reply));
  await hooks.install(app);
  acceptJson(app);
  const unrouted = answerUnrouted(app);
  serveUpgrades(app.server, deps.websocket);
  // Refused with the others' heads; Node's own answer has no body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));

  const idempotency = createIdempotency({
    db: deps.services.db,
    log,
    holder: deps.holder,
    awaitShown: deps.services.awaitShown,
  });
  const stops: (() => Promise<void> | void)[] = [() => idempotency.stop()];
  const origin = originOf(settings);
  registerHealth(app, { ...deps.health, version: deps.version, origin });
  if (settings.roles.includes('ingest')) await registerWebhooks(app, deps.webhooks, limiter, deps.resolveCaller);
  if (settings.roles.includes('api')) {
    const prepared = deps.operations.map((operation) => prepare(operation, deps.services));
    const rest = { origin, idempotency, limiter, services: deps.services };
    const plain = prepared.filter(({ operation }) => !operation.takes);
    for (const one of plain) if (!one.operation.rest?.oauth) registerRest(app, one, rest);
    await app.register(async (scope) => {
      acceptForms(scope);
      for (const one of plain) if (one.operation.rest?.oauth) registerRest(scope, one, rest);
    });
    await app.register(async (scope) => {
      await acceptMultipart(scope);
      for (const one of prepared) if (one.operation.takes) registerRest(scope, one, rest);
    });
    const schema = buildGraphqlSchema(prepared);
    const graphql = await registerGraphql(app, {
      schema,
      playground: settings.graphql.playground === true,
      limits: deps.graphql?.limits,
      limiter,
      log,
    });
    stops.push(() => graphql.stop());
    registerSecurityTxt(app, settings);
    await registerDocs(app, {
      settings,
      schema,
      asyncapi: () => asyncApiDocument(deps.channels ?? [], { version: deps.version, public_url: settings.public_url }),
      openapi: () =>
        openApiDocument(deps.operations, {
          version: deps.version,
          public_url: settings.public_url,
          webhooks: deps.webhooks,
        }),
    });
  }
  if (settings.roles.includes('realtime')) app.get('/v1/ws', askForUpgrade);
  await deps.extend?.(app);
  unrouted.finish();

  function sendFailure(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    const failure = toFailure(error);
    if (failure.hidden) {
      log[failure.severity](
        { error, ...logFacts(request), method: request.method, route: request.routeOptions?.url },
        'a request failed',
      );
    }
    if (failure.retry_after_seconds !== undefined) void reply.header('retry-after', failure.retry_after_seconds);
    if (failure.status === 401) void reply.header('www-authenticate', challengeOf(request, failure.message));
    void reply
      .code(failure.status)
      .header('content-type', JSON_TYPE)
      .send(JSON.stringify(restBody(failure)));
  }

  return {
    app,
    async listen() {
      await app.listen({ host: settings.host, port: settings.port });
      const { port } = app.server.address() as AddressInfo;
      return `http://${settings.host.includes(':') ? `[${settings.host}]` : settings.host}:${port}`;
    },
    async close() {
      hooks.drain();
      // Just after a look for new connections: one that the system has taken for us and we have not would be reset by
      // the close.
      await immediate();
      // The HTTP server's own close would at once cut connections whose request is still on its way.
      NetServer.prototype.close.call(app.server);
      const began = performance.now();
      const waited = () => performance.now() - began;
      while ((await openConnections(app)) > 0 && waited() < LONGEST_DRAIN_MS) {
        await sleep(10);
        // A process that stood still first runs its timers: what came in meanwhile is read before it is called quiet.
        await immediate();
        if (Math.min(waited(), hooks.quiet_ms()) > DRAIN_MS) break;
      }
      await app.close();
      for (const stop of stops) await stop();
    },
  };
}

/**
 * Kept-alive connections get this long to ask once more and be told that they end; when all ask nothing for so long
 * they are cut.
 */
const DRAIN_MS = 250;
const LONGEST_DRAIN_MS = 2000;

const openConnections = (app: FastifyInstance): Promise<number> =>
  new Promise((count, fail) =>
    app.server.getConnections((error, connections) => (error ? fail(error) : count(connections))),
  );

/** Upgrades to WebSockets do not pass here: this is a request that forgot to be one. */
async function askForUpgrade(_request: FastifyRequest, reply: FastifyReply): Promise<never> {
  void reply.header('upgrade', 'websocket');
  throw new ApiError('BAD_REQUEST', 'This address speaks WebSocket: upgrade the connection', { status: 426 });
}

/** What is not HTTP enough to become a request gets the same flat body. */
function answerBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  const body = '{"error":"BAD_REQUEST","message":"The request is malformed"}';
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: ${JSON_TYPE}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
}
