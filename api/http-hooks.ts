import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { preflightBucket } from '../access/rate-buckets';
import type { Settings } from '../kernel/settings';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { Tracing } from '../engines/tracing/port';
import type { Limiter } from './rate-limit';
import { checkHead } from './request-head';
import { contextOf, correlationId, logFacts, type ResolveCaller, traceparentOf } from './request-state';

export interface HttpHookOptions {
  settings: Settings;
  log: Logger;
  metrics: Metrics;
  tracing: Tracing;
  limiter: Limiter;
  resolveCaller: ResolveCaller;
}

/** Asked every few seconds by every load balancer: their spans would bury all others. */
const PROBES: ReadonlySet<string> = new Set(['/v1', '/v1/health']);
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const ALLOWED_HEADERS =
  'authorization, content-type, idempotency-key, traceparent, x-correlation-id, x-lumio-account, x-share-password';
const EXPOSED_HEADERS =
  'idempotency-replayed, location, retry-after, www-authenticate, x-correlation-id, x-lumio-read-model, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset';

/**
 * What happens around every request: correlation id, headers, CORS, caller, rate limit; afterwards metrics and the log
 * line.
 */
export function createHttpHooks(options: HttpHookOptions): {
  install(app: FastifyInstance): void;
  /**
   * From now on each answer ends its connection: a client's next request then goes elsewhere instead of into a closing
   * socket.
   */
  drain(): void;
  /** Milliseconds since a request began. */
  quiet_ms(): number;
} {
  const { settings, log, tracing, limiter, resolveCaller } = options;
  const requests = options.metrics.counter('http_requests_total', 'HTTP requests', ['method', 'route', 'status']);
  const durations = options.metrics.histogram(
    'http_request_duration_seconds',
    'Time from the request line to the end of the answer',
    BUCKETS,
    ['method', 'route', 'status'],
  );
  const headers: Record<string, string> = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    ...(settings.public_url?.startsWith('https:') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };
  const origins = new Set(settings.allowed_origins);
  const publicOrigin = settings.public_url === undefined ? undefined : new URL(settings.public_url).origin;

  let asked_at = performance.now();

  function cors(request: FastifyRequest, reply: FastifyReply): void {
    const { origin } = request.headers;
    if (origin !== undefined && origins.size > 0) {
      void reply.header('vary', 'Origin');
      if (origins.has(origin)) {
        void reply.headers({
          'access-control-allow-origin': origin,
          'access-control-allow-credentials': 'true',
          'access-control-expose-headers': EXPOSED_HEADERS,
        });
      } else if (origins.has('*')) {
        void reply.headers({ 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED_HEADERS });
      }
    }
  }

  /**
   * Answers without asking who it is: browsers send no credential with it. Counted apart, so that they do not use up
   * anybody's requests.
   */
  async function preflight(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await limiter.count(preflightBucket(request.ip), 1, reply);
    void reply
      .headers({
        'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
        'access-control-allow-headers': ALLOWED_HEADERS,
        'access-control-max-age': '7200',
      })
      .code(204)
      .send();
  }

  /** A cookie alone must not change anything on behalf of a page from elsewhere. Source: spec rulings, c20. */
  function withoutForeignCookie(request: FastifyRequest): FastifyRequest['headers'] {
    const { headers: given } = request;
    if (given.cookie === undefined || given.authorization !== undefined) return given;
    if (request.method === 'GET' || request.method === 'HEAD') return given;
    const { origin } = given;
    const own =
      origin !== undefined && (origins.has(origin) || origin === publicOrigin || hostOf(origin) === request.host);
    return own ? given : { ...given, cookie: undefined };
  }

  async function identify(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { caller, failure } = await resolveCaller({
      headers: withoutForeignCookie(request),
      method: request.method,
      url: request.url,
      query: request.query as Record<string, unknown>,
      ip: request.ip,
    });
    request.state = { caller, failure, context: contextOf(request) };
    await limiter.count(caller, 1, reply);
  }

  return {
    drain: () => void (headers.connection = 'close'),
    quiet_ms: () => performance.now() - asked_at,
    install(app) {
      app.addHook('onRequest', (request, reply, done) => {
        asked_at = performance.now();
        request.correlation_id = correlationId(request);
        if (tracing.on && !PROBES.has(request.routeOptions.url ?? '')) {
          const { method } = request;
          const route = request.routeOptions.url ?? 'unmatched';
          request.span = tracing.start(`HTTP ${method} ${route}`, {
            kind: 'server',
            parent: traceparentOf(request),
            attributes: { 'http.request.method': method, 'http.route': route },
          });
        }
        void reply.headers(headers).header('x-correlation-id', request.correlation_id);
        const refusal = checkHead(request.raw);
        if (refusal) {
          // What follows on the connection may be a body that was not meant to be sent.
          void reply.header('connection', 'close');
          done(refusal);
          return;
        }
        cors(request, reply);
        if (request.method === 'OPTIONS') {
          preflight(request, reply).catch(done);
          return;
        }
        if (request.routeOptions.config.limit === 'exempt') {
          done();
          return;
        }
        identify(request, reply).then(() => done(), done);
      });
      app.addHook('onResponse', (request, reply, done) => {
        const labels = {
          method: request.method,
          route: request.routeOptions.url ?? 'unmatched',
          status: String(reply.statusCode),
        };
        const seconds = reply.elapsedTime / 1000;
        requests.inc(1, labels);
        durations.observe(seconds, labels);
        if (request.span) {
          request.span.set({
            'http.response.status_code': reply.statusCode,
            'lumio.correlation_id': request.correlation_id,
          });
          request.span.end(reply.statusCode >= 500 ? `status ${reply.statusCode}` : undefined);
        }
        if (request.routeOptions.config.routine && reply.statusCode < 400) {
          done();
          return;
        }
        const facts = { ...labels, ms: Math.round(seconds * 1e4) / 10, ...logFacts(request) };
        if (reply.statusCode >= 500) log.warn(facts, 'request failed');
        else if (reply.statusCode >= 400 || request.method !== 'GET') log.info(facts, 'request');
        else log.debug(facts, 'request');
        done();
      });
    },
  };
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}
