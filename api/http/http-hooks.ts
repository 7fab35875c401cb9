import cors from '@fastify/cors';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { preflightBucket } from '../../access/limits/rate-buckets';
import type { Caller } from '../../access/authentication/caller';
import type { Resolution } from '../../access/authentication/resolve';
import type { Settings } from '../../kernel/settings/settings';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Tracing } from '../../engines/tracing/port';
import { OriginPolicy } from '../../lib/net/origins';
import { corsOf, foreignCookies } from './requests/cross-origin';
import type { Limiter } from './rate-limit';
import { createRequestEnds } from './requests/request-ends';
import { checkHead } from './requests/request-head';
import { contextOf, correlationId, type ResolveCaller, traceparentOf } from './requests/request-state';

export interface HttpHookOptions {
  settings: Settings;
  log: Logger;
  metrics: Metrics;
  tracing: Tracing;
  limiter: Limiter;
  resolveCaller: ResolveCaller;
}

/** Body of a token request whose address has no units left; larger ones are refused unread. */
const MAX_CREDENTIALS_BYTES = 16 * 1024;

/** Routes without spans: load balancers call them every few seconds, which would bury all other spans. */
const PROBES: ReadonlySet<string> = new Set(['/v1', '/v1/health']);

/**
 * Hooks around every request: correlation id, headers, CORS, caller, rate limit; afterwards metrics and the log line.
 */
export function createHttpHooks(options: HttpHookOptions): {
  install(app: FastifyInstance): Promise<void>;
  /**
   * Makes each further answer close its connection, so that a client's next request uses another node instead of a
   * closing socket.
   */
  drain(): void;
  /** Milliseconds since a request began. */
  quiet_ms(): number;
} {
  const { settings, tracing, limiter, resolveCaller } = options;
  const ended = createRequestEnds(options);
  const origins = new OriginPolicy(settings);
  const cookies = foreignCookies(origins);
  const headers: Record<string, string> = {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'cache-control': 'no-store',
    ...(settings.public_url?.startsWith('https:') ? { 'strict-transport-security': 'max-age=31536000' } : {}),
  };

  let asked_at = performance.now();

  /**
   * Drops an OAuth client's HTTP Basic, which the token endpoint reads itself, so that it is not resolved as a failed
   * bearer token. Drops the cookie as well: next to an `Authorization` its origin was not checked.
   */
  function headersOf(request: FastifyRequest): IncomingHttpHeaders {
    const dropped = cookies.dropped(request);
    const { client_basic } = request.routeOptions.config;
    return client_basic && /^basic /i.test(dropped.authorization ?? '')
      ? { ...dropped, authorization: undefined, cookie: undefined }
      : dropped;
  }

  /** Resolves and counts the caller. Returns a promise only when a lookup or a wait is needed. */
  function identify(request: FastifyRequest, reply: FastifyReply): Promise<void> | null {
    const found = resolveCaller({
      headers: headersOf(request),
      method: request.method,
      url: request.url,
      query: request.query as Record<string, unknown>,
      ip: request.client_ip,
    });
    if (!(found instanceof Promise)) return admit(found, request, reply);
    return found.then(async (one) => {
      await admit(one, request, reply);
    });
  }

  function admit({ caller, failure }: Resolution, request: FastifyRequest, reply: FastifyReply): Promise<void> | null {
    const units = limiter.unitsOf(caller, reply);
    request.state = { caller, failure, context: { ...contextOf(request), units } };
    const counted = limiter.countCaller(caller, 1, reply);
    const may_move = mayBeClient(request, caller) || mayHaveLink(request, caller);
    return counted && may_move ? counted.catch(units.defer) : counted;
  }

  /**
   * Whether the request may authenticate an OAuth client, which has a bucket of its own, at the cost of a small body
   * and a look-up. An `Idempotency-Key` costs a row before the client is known.
   */
  function mayBeClient({ routeOptions, headers }: FastifyRequest, { kind }: Caller): boolean {
    if (routeOptions.config.client_basic !== true || kind !== 'anonymous') return false;
    return Number(headers['content-length']) <= MAX_CREDENTIALS_BYTES && headers['idempotency-key'] === undefined;
  }

  /** Whether the request may be admitted by a signed link, which counts in a bucket of its account. */
  const mayHaveLink = ({ routeOptions, query }: FastifyRequest, { kind }: Caller): boolean =>
    routeOptions.config.signed_link === true && kind === 'anonymous' && 'signature' in (query as object);

  /**
   * Answers a preflight without resolving a caller, because browsers send no credential with it. Counted in a bucket of
   * its own, so that preflights use up no caller's requests.
   */
  async function answerPreflight(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await limiter.count(preflightBucket(request.client_ip), 1, reply);
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
          // Closes the connection, because a body that was not meant to be sent may follow.
          void reply.header('connection', 'close');
          done(refusal);
          return;
        }
        done();
      });
      if (settings.allowed_origins.length > 0) await app.register(cors, corsOf(origins));
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
