import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
import { createRateLimiter } from '../access/limits/rate-limiter';
import type { Operation } from '../app/operation';
import type { Services } from '../app/services';
import type { Settings } from '../kernel/settings/settings';
import { ApiError } from '../kernel/errors';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import { NO_TRACING, type Tracing } from '../engines/tracing/port';
import type { RateLimits } from '../engines/rate-limits/port';
import type { Family } from '../realtime/runtime/channel/family';
import type { ReadingBounds } from './http/answers/answer-room';
import { asyncApiDocument } from './documents/asyncapi';
import { acceptJson } from './http/requests/bodies';
import { boundBodies } from './http/requests/body-room';
import { clientIp, trustedProxies } from './http/requests/client-ip';
import { endStalledBodies } from './http/requests/stalled-bodies';
import { closeUnreadBodies, endConnection } from './http/requests/unread-bodies';
import { answerInTurn } from './http/requests/pipelined-requests';
import { challengeOf } from './http/answers/challenges';
import { registerDocs } from './documents/docs';
import { restBody, toFailure } from './http/answers/errors';
import { createFailureLog } from './http/answers/failure-log';
import { buildGraphqlSchema } from './graphql/schema';
import type { GraphqlLimits } from './graphql/limits/limits';
import { registerGraphql } from './graphql/server';
import { registerHealth, type HealthCheck } from './health/health';
import { createHttpHooks } from './http/http-hooks';
import { createIdempotency, type LockHolder } from './rest/idempotency';
import { prepare } from './rest/invoke';
import { MAX_BODY_BYTES } from './http/requests/json-body';
import { originOf } from './rest/links';
import { openApiDocument } from './openapi/openapi';
import { createLimiter } from './http/rate-limit';
import { acceptForms } from './rest/oauth-bodies';
import { originForm } from './http/requests/request-head';
import { logFacts, noteFailure, type ResolveCaller } from './http/requests/request-state';
import { JSON_TYPE, registerRest } from './rest/rest';
import { registerSecurityTxt } from './documents/security-txt';
import { answerUnrouted } from './http/answers/unrouted';
import { acceptMultipart } from './rest/uploads';
import { createSendText } from './http/answers/slow-readers';
import { serveUpgrades, type UpgradeHandler } from './http/upgrades';
import type { WebhookRoute } from '../ingest/runtime/webhook/webhook';
import { registerWebhooks } from './rest/webhooks';

/** Idle time after which a connection is closed, because each reader that never reads holds an answer in memory. */
const SILENT_CONNECTION_MS = 120_000;

export interface ApiDeps {
  settings: Settings;
  operations: readonly Operation[];
  services: Services;
  resolveCaller: ResolveCaller;
  /** Session lock of this process, visible to other processes. */
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
  reading?: Partial<ReadingBounds>;
  /** Every family of channels, for the documents. */
  channels?: readonly Family[];
  /** Handles the upgrades to WebSockets; absent on a node without that role. */
  websocket?: UpgradeHandler | undefined;
  /**
   * Registers routes that are not operations (`.well-known`, file transfer); called last, before the server is ready.
   */
  extend?(app: FastifyInstance): Promise<void> | void;
}

export interface Api {
  app: FastifyInstance;
  /** Serves on the settings' host and port; resolves with the origin, `http://127.0.0.1:7070`. */
  listen(): Promise<string>;
  /** Refuses new connections, finishes running requests, and closes. */
  close(): Promise<void>;
}

/**
 * Derives REST, GraphQL, SDL and OpenAPI from the operations and serves them with webhooks, health and documents. A
 * node answers 404 to the routes of roles that it does not have. Design §4, §9.
 */
export async function createApi(deps: ApiDeps): Promise<Api> {
  const { settings, log, metrics } = deps;
  const app = Fastify({
    logger: false,
    trustProxy: settings.trusted_proxies.length > 0 ? trustedProxies(settings.trusted_proxies) : false,
    bodyLimit: MAX_BODY_BYTES,
    routerOptions: { maxParamLength: 500, ignoreTrailingSlash: false },
    requestTimeout: 60_000,
    connectionTimeout: SILENT_CONNECTION_MS,
    // A missing Host header is refused by a hook, with a body.
    http: { requireHostHeader: false },
    rewriteUrl: originForm,
    // Requests during the close are answered as usual, because Fastify's own 503 has no Retry-After for vendors.
    return503OnClosing: false,
    genReqId: () => '',
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error, request, reply) => sendFailure(error, request as FastifyRequest, reply as FastifyReply),
  });
  app.decorateRequest('state', null);
  app.decorateRequest('correlation_id', '');
  app.decorateRequest('span', null);
  const clientOf = clientIp(settings.trusted_proxies);
  app.decorateRequest('client_ip', {
    getter() {
      return clientOf(this.raw);
    },
  });

  const logFailure = createFailureLog(log);
  const limiter = createLimiter(createRateLimiter({ limits: deps.rate_limits, log, metrics }));
  const hooks = createHttpHooks({
    settings,
    log,
    metrics,
    tracing: deps.tracing ?? NO_TRACING,
    limiter,
    resolveCaller: deps.resolveCaller,
  });
  // Set before the first route, because a route keeps the handler of its registration.
  app.setErrorHandler((error: FastifyError, request, reply) => sendFailure(error, request, reply));
  answerInTurn(app);
  closeUnreadBodies(app);
  await hooks.install(app);
  const { members: proven, anonymous_members: anonymous } = settings.requests;
  acceptJson(app, { proven, anonymous });
  endStalledBodies(app, settings.requests.body_progress);
  boundBodies(app, settings.requests);
  const unrouted = answerUnrouted(app);
  serveUpgrades(app.server, deps.websocket);
  // The hook that checks heads refuses other expectations; Node's own answer has no body.
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
    const prepared = deps.operations.map((operation) =>
      prepare(operation, deps.services, settings.env === 'development'),
    );
    const sendText = createSendText(deps.reading);
    const rest = { origin, idempotency, limiter, services: deps.services, sendText };
    const plain = prepared.filter(({ operation }) => !operation.takes);
    for (const one of plain) if (!one.operation.rest?.oauth) registerRest(app, one, rest);
    await app.register(async (scope) => {
      acceptForms(scope);
      // A request without a unit of its own is refused for that, whatever else is wrong with it.
      scope.setErrorHandler((error: FastifyError, request, reply) => {
        sendFailure(request.state?.context.units?.refusal() ?? error, request, reply);
      });
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
      sendText,
      limiter,
      log,
      logFailure,
    });
    stops.push(() => graphql.stop());
    registerSecurityTxt(app, settings);
    await registerDocs(app, {
      settings,
      schema,
      sendText,
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
    const { method } = request;
    const route = request.routeOptions?.url ?? 'unmatched';
    const facts = { error, ...logFacts(request), method, route };
    logFailure(error, failure, { route: `${method} ${route}`, facts }, 'a request failed');
    if (failure.hidden) noteFailure(request);
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
      // Right after the event loop has accepted connections, because the close would reset those not accepted yet.
      await immediate();
      // The HTTP server's own close would at once cut connections whose request is still arriving.
      NetServer.prototype.close.call(app.server);
      const began = performance.now();
      const waited = () => performance.now() - began;
      while ((await openConnections(app)) > 0 && waited() < LONGEST_DRAIN_MS) {
        await sleep(10);
        // A stalled process runs its timers first: requests that arrived meanwhile are read before the check for quiet.
        await immediate();
        if (Math.min(waited(), hooks.quiet_ms()) > DRAIN_MS) break;
      }
      await app.close();
      for (const stop of stops) await stop();
    },
  };
}

/**
 * Time in which kept-alive connections may send one more request, whose answer closes them. After this time without any
 * request the connections are cut.
 */
const DRAIN_MS = 250;
const LONGEST_DRAIN_MS = 2000;

const openConnections = (app: FastifyInstance): Promise<number> =>
  new Promise((count, fail) =>
    app.server.getConnections((error, connections) => (error ? fail(error) : count(connections))),
  );

/** Refuses a plain request to the WebSocket's path; upgrades do not reach this route. */
async function askForUpgrade(_request: FastifyRequest, reply: FastifyReply): Promise<never> {
  void reply.header('upgrade', 'websocket');
  throw new ApiError('BAD_REQUEST', 'This address speaks WebSocket: upgrade the connection', { status: 426 });
}

/** Answers malformed HTTP, which never becomes a request, with the usual flat body. */
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
  endConnection(
    socket,
    `HTTP/1.1 ${status}\r\ncontent-type: ${JSON_TYPE}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`,
  );
}
