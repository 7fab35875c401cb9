import type { FastifyCorsOptions } from '@fastify/cors';
import type { FastifyRequest } from 'fastify';
import { HOSTLESS_ORIGINS, type OriginPolicy } from '../../../lib/net/origins';

/** Response headers that a page of another origin may read. */
const EXPOSED_HEADERS = [
  'idempotency-replayed',
  'location',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'www-authenticate',
  'x-correlation-id',
  'x-lumio-read-model',
];

/** Request headers that a page of another origin may send. */
const ALLOWED_HEADERS = [
  'authorization',
  'content-type',
  'idempotency-key',
  'traceparent',
  'x-correlation-id',
  'x-lumio-account',
  'x-share-password',
];

type AnswerFor = (request: FastifyRequest, answer: (error: null, options: FastifyCorsOptions) => void) => void;

/**
 * CORS options per origin: pages of a listed origin may send their visitors' cookies, `*` allows all others without
 * cookies.
 */
export function corsOf(origins: OriginPolicy): { delegator: AnswerFor } {
  const shared: FastifyCorsOptions = {
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    allowedHeaders: ALLOWED_HEADERS,
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: 7200,
    // Preflights are answered by a hook of ours, after they are counted.
    preflightContinue: true,
    strictPreflight: false,
  };
  const toAnybody = { ...shared, origin: '*' };
  const toNobody = { ...shared, origin: [], credentials: true };
  return {
    delegator({ headers: { origin } }, answer) {
      if (origin !== undefined && origins.isListed(origin)) answer(null, { ...toNobody, origin });
      else answer(null, origins.any ? toAnybody : toNobody);
    },
  };
}

/**
 * Protects cookies from pages of other origins: a cookie alone must not change anything. Source: spec rulings, c20.
 * Reads of sandboxed frames and local files go without cookies too.
 */
export function foreignCookies(origins: OriginPolicy): {
  /** The headers of a request, without the cookie when the page's origin may not use it. */
  dropped(request: FastifyRequest): FastifyRequest['headers'];
} {
  return {
    dropped({ headers, method, host }) {
      if (headers.cookie === undefined || headers.authorization !== undefined) return headers;
      const { origin } = headers;
      const safe = method === 'GET' || method === 'HEAD';
      if (safe && !HOSTLESS_ORIGINS.includes(origin ?? '')) return headers;
      return origins.allowsCookies(origin, host) ? headers : { ...headers, cookie: undefined };
    },
  };
}
