import type { FastifyCorsOptions } from '@fastify/cors';
import type { FastifyRequest } from 'fastify';
import type { Settings } from '../../../kernel/settings/settings';

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

type OriginSettings = Pick<Settings, 'allowed_origins' | 'public_url'>;
type AnswerFor = (request: FastifyRequest, answer: (error: null, options: FastifyCorsOptions) => void) => void;

/**
 * CORS options per origin: pages of a listed origin may send their visitors' cookies, `*` allows all others without
 * cookies.
 */
export function corsOf({ allowed_origins }: OriginSettings): { delegator: AnswerFor } {
  const named = new Set(allowed_origins);
  const shared: FastifyCorsOptions = {
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    allowedHeaders: ALLOWED_HEADERS,
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: 7200,
    // Preflights are answered by a hook of ours, after they are counted.
    preflightContinue: true,
    strictPreflight: false,
  };
  const toNamed = { ...shared, origin: allowed_origins.filter((origin) => origin !== '*'), credentials: true };
  const toAnybody = { ...shared, origin: '*' };
  return {
    delegator: ({ headers: { origin } }, answer) =>
      answer(null, named.has('*') && !named.has(origin ?? '') ? toAnybody : toNamed),
  };
}

/** Protects cookies from pages of other origins: a cookie alone must not change anything. Source: spec rulings, c20. */
export function foreignCookies({ allowed_origins, public_url }: OriginSettings): {
  /** The headers of a request, without the cookie when the page's origin may not use it. */
  dropped(request: FastifyRequest): FastifyRequest['headers'];
} {
  const origins = new Set(allowed_origins);
  if (public_url !== undefined) origins.add(new URL(public_url).origin);
  return {
    dropped({ headers, method, host }) {
      if (headers.cookie === undefined || headers.authorization !== undefined) return headers;
      if (method === 'GET' || method === 'HEAD') return headers;
      const { origin } = headers;
      const own = origin !== undefined && (origins.has(origin) || hostOf(origin) === host);
      return own ? headers : { ...headers, cookie: undefined };
    },
  };
}

function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null;
}
