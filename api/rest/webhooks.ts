import type { FastifyInstance } from 'fastify';
import type { WebhookRoute } from '../../ingest/runtime/webhook/webhook';
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
      scope.route({
        method: route.method,
        url: route.path.replace(/\{(\w+)\}/g, ':$1'),
        bodyLimit: MAX_BODY_BYTES,
        config: { limit: 'exempt', routine: true, challenge: SIGNATURE },
        handler: async (request, reply) => {
          const countRefusal = async () => {
            const anonymous = {
              headers: {},
              method: request.method,
              url: route.path,
              query: {},
              ip: request.client_ip,
            };
            const { caller } = await resolveCaller(anonymous);
            await limiter.count(caller, 1, reply);
          };
          const answer = await deliver(route, {
            headers: request.headers,
            query: request.query as Record<string, unknown>,
            raw_body: (request.body as Buffer | undefined) ?? EMPTY,
            received_at: Date.now(),
            ip: request.client_ip,
            trace: traceOf(request),
            log_facts: logFacts(request),
            params: request.params as Record<string, string>,
          }).catch(async (error: unknown) => {
            if (error instanceof ApiError && refused(error.status)) await countRefusal();
            throw error;
          });
          if (refused(answer.status)) await countRefusal();
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

/** Answers 503 to a delivery that could not be stored, so that the vendor sends it again. */
async function deliver(
  route: WebhookRoute,
  request: Parameters<WebhookRoute['handle']>[0],
): ReturnType<WebhookRoute['handle']> {
  try {
    return await route.handle(request);
  } catch (error) {
    const failure = toFailure(error);
    if (failure.status !== 500) throw error;
    throw new ApiError(failure.code, failure.message, { status: 503, retry_after_seconds: 5, cause: error });
  }
}
