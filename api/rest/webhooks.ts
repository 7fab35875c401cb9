import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { hasOneOf, type WebhookRequest, type WebhookRoute } from '../../ingest/runtime/webhook/webhook';
import { ApiError } from '../../kernel/errors';
import { toFailure } from '../http/answers/errors';
import { MAX_BODY_BYTES } from '../http/requests/json-body';
import type { Limiter } from '../http/rate-limit';
import { logFacts, type ResolveCaller, traceOf } from '../http/requests/request-state';

const EMPTY = Buffer.alloc(0);
/** A registered content type: Fastify finds its parser in a table, but parses any other type on each request. */
const BYTES = 'application/octet-stream';
/** Challenge of webhooks, whose signature authenticates the sender. */
const SIGNATURE = 'Signature';
const refused = (status: number) => status === 401 || status === 403;

/**
 * Registers vendors' webhooks in a scope of their own, where bodies stay the signed bytes. Deliveries with a valid
 * signature are not rate-limited; refused ones count against the sender's address (spec rulings, "rate limits").
 */
export async function registerWebhooks(
  app: FastifyInstance,
  routes: readonly WebhookRoute[],
  limiter: Limiter,
  resolveCaller: ResolveCaller,
): Promise<void> {
  async function countRefusal(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { method, url, client_ip: ip } = request;
    const { caller } = await resolveCaller({ headers: {}, method, url, query: {}, ip });
    await limiter.count(caller, 1, reply);
  }

  async function fail(error: unknown, request: FastifyRequest, reply: FastifyReply): Promise<never> {
    if (error instanceof ApiError && refused(error.status)) await countRefusal(request, reply);
    throw error;
  }

  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(BYTES, { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
      done(null, body),
    );
    // Overrides the content type, which has no effect here, so that a malformed one refuses no delivery.
    scope.addHook('onRequest', (request, _reply, done) => {
      request.raw.headers['content-type'] = BYTES;
      done();
    });
    for (const route of routes) {
      const { signatures = [] } = route;
      scope.route({
        method: route.method,
        url: route.path.replace(/\{(\w+)\}/g, ':$1'),
        bodyLimit: MAX_BODY_BYTES,
        config: { limit: 'exempt', routine: true, challenge: SIGNATURE, signatures },
        onRequest: async (request, reply) => {
          if (!route.admitUnsigned || hasOneOf(request.headers, signatures)) return;
          // The parser of bodies refuses this size by the same header.
          if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) return;
          const unsigned = deliver(() => route.admitUnsigned!(deliveryOf(request, EMPTY)));
          await unsigned.catch((error: unknown) => fail(error, request, reply));
        },
        handler: async (request, reply) => {
          const body = (request.body as Buffer | undefined) ?? EMPTY;
          const answer = await deliver(() => route.handle(deliveryOf(request, body))).catch((error: unknown) =>
            fail(error, request, reply),
          );
          if (refused(answer.status)) await countRefusal(request, reply);
          if (answer.status === 401) void reply.header('www-authenticate', SIGNATURE);
          if (answer.headers) void reply.headers(answer.headers);
          void reply.code(answer.status);
          if (answer.body === undefined) return reply.send();
          return reply
            .header('content-type', answer.content_type ?? 'application/json; charset=utf-8')
            .send(answer.body);
        },
      });
    }
  });
}

const deliveryOf = (request: FastifyRequest, raw_body: Buffer): WebhookRequest => ({
  headers: request.headers,
  query: request.query as Record<string, unknown>,
  raw_body,
  received_at: Date.now(),
  ip: request.client_ip,
  trace: traceOf(request),
  log_facts: logFacts(request),
  params: request.params as Record<string, string>,
});

/** Answers 503 to a delivery that could not be stored, so that the vendor sends it again. */
async function deliver<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failure = toFailure(error);
    if (failure.status !== 500) throw error;
    throw new ApiError(failure.code, failure.message, { status: 503, retry_after_seconds: 5, cause: error });
  }
}
