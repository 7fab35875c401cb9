import type { FastifyReply, FastifyRequest } from 'fastify';
import { preflightBucket } from '../access/rate-buckets';
import type { Settings } from '../kernel/settings';
import type { Limiter } from './rate-limit';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const ALLOWED_HEADERS =
  'authorization, content-type, idempotency-key, traceparent, x-correlation-id, x-lumio-account, x-share-password';
const EXPOSED_HEADERS =
  'idempotency-replayed, location, ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after, ' +
  'www-authenticate, x-correlation-id, x-lumio-read-model';

/** What pages of other origins may do. Nothing is said to them while no origin is allowed. */
export interface CrossOrigin {
  /** Tells a browser whether the page that asks may read the answer. */
  allow(request: FastifyRequest, reply: FastifyReply): void;
  /**
   * Answers a preflight without asking who it is: browsers send no credential with it. Counted apart, so that they do
   * not use up anybody's requests.
   * @throws ApiError RATE_LIMIT_EXCEEDED
   */
  preflight(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  /** A cookie alone must not change anything on behalf of a page from elsewhere. Source: spec rulings, c20. */
  withoutForeignCookie(request: FastifyRequest): FastifyRequest['headers'];
}

export function createCrossOrigin(
  settings: Pick<Settings, 'allowed_origins' | 'public_url'>,
  limiter: Limiter,
): CrossOrigin {
  const origins = new Set(settings.allowed_origins);
  const publicOrigin = settings.public_url === undefined ? undefined : new URL(settings.public_url).origin;
  return {
    allow(request, reply) {
      const { origin } = request.headers;
      if (origin === undefined || origins.size === 0) return;
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
    },

    async preflight(request, reply) {
      await limiter.count(preflightBucket(request.ip), 1, reply);
      void reply
        .headers({
          'access-control-allow-methods': METHODS,
          'access-control-allow-headers': ALLOWED_HEADERS,
          'access-control-max-age': '7200',
        })
        .code(204)
        .send();
    },

    withoutForeignCookie({ headers, method, host }) {
      if (headers.cookie === undefined || headers.authorization !== undefined) return headers;
      if (method === 'GET' || method === 'HEAD') return headers;
      const { origin } = headers;
      const own = origin !== undefined && (origins.has(origin) || origin === publicOrigin || hostOf(origin) === host);
      return own ? headers : { ...headers, cookie: undefined };
    },
  };
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}
