import cors from '@fastify/cors';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { preflightBucket } from '../access/rate-buckets';
import type { Resolution } from '../access/resolve';
import type { Settings } from '../kernel/settings';
import type { Logger } from '../engines/log/port';
import type { Metrics } from '../engines/metrics/port';
import type { Tracing } from '../engines/tracing/port';
import { corsOf, foreignCookies } from './cross-origin';
import type { Limiter } from './rate-limit';
import { createRequestEnds } from './request-ends';
import { checkHead } from './request-head';
import { contextOf, correlationId, type ResolveCaller, traceparentOf } from './request-state';

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

/**
 * What happens around every request: correlation id, headers, CORS, caller, rate limit; afterwards metrics and the log
 * line.
 */
export function createHttpHooks(options: HttpHookOptions): {
  install(app: FastifyInstance): Promise<void>;
  /**
   * From now on each answer ends its connection: a client's next request then goes elsewhere instead of into a closing
   * socket.
   */
  drain(): void;
  /** Milliseconds since a request began. */
  quiet_ms(): number;
} {
  const { settings, tracing, limiter, resolveCaller } = options;
  const ended = createRequestEnds(options);
  const cookies = foreignCookies(settings);
  const headers: Record<string, string> = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    ...(settings.public_url?.startsWith('https:') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };

  let asked_at = performance.now();

  /** Returns a promise only when something has to be looked up or waited for. */
  function identify(request: FastifyRequest, reply: FastifyReply): Promise<void> | null {
    const found = resolveCaller({
      headers: cookies.dropped(request),
      method: request.method,
      url: request.url,
      query: request.query as Record<string, unknown>,
      ip: request.ip,
    });
    if (!(found instanceof Promise)) return admit(found, request, reply);
    return found.then(async (one) => {
      await admit(one, request, reply);
    });
  }

  function admit({ caller, failure }: Resolution, request: FastifyRequest, reply: FastifyReply): Promise<void> | null {
    request.state = { caller, failure, context: contextOf(request) };
    return limiter.count(caller, 1, reply);
  }

  /**
   * Answers a preflight without asking who it is: browsers send no credential with it. Counted apart, so that they do
   * not use up anybody's requests.
   */
  async function answerPreflight(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await limiter.count(preflightBucket(request.ip), 1, reply);
    void reply.code(204).send();
  }

  return {
    drain: () => void (headers.connection = 'close'),
    quiet_ms: () => performance.now() - asked_at,
    async install(app) {
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
        done();
      });
      if (settings.allowed_origins.length > 0) await app.register(cors, corsOf(settings));
      app.addHook('onRequest', (request, reply, done) => {
        if (request.method === 'OPTIONS') {
          answerPreflight(request, reply).catch(done);
          return;
        }
        if (request.routeOptions.config.limit === 'exempt') {
          done();
          return;
        }
        let under_way: Promise<void> | null;
        try {
          under_way = identify(request, reply);
        } catch (error) {
          done(error as Error);
          return;
        }
        if (under_way === null) done();
        else under_way.then(() => done(), done);
      });
      app.addHook('onResponse', (request, reply, done) => {
        ended(request, reply);
        done();
      });
    },
  };
}
