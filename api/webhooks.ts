import type { FastifyInstance } from 'fastify';
import type { WebhookRoute } from '../ingest/runtime/webhook';
import { ApiError } from '../kernel/errors';
import { toFailure } from './errors';
import { MAX_BODY_BYTES } from './json-body';
import type { Limiter } from './rate-limit';
import { logFacts, type ResolveCaller, traceOf } from './request-state';

const EMPTY = Buffer.alloc(0);
/** Fastify looks for the parser of a type that it knows in a table, and takes any other one apart for each request. */
const BYTES = 'application/octet-stream';
/** Deliveries prove by their signature who sent them. */
const SIGNATURE = 'Signature';
const refused = (status: number) => status === 401 || status === 403;

/**
 * Registers vendors' webhooks in a scope of their own, where bodies stay the bytes that were signed. Deliveries with a
 * valid signature are outside rate limits; refused ones count against the sender's address (spec rulings, "rate
 * limits").
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
    // What a body is said to be decides nothing, so a content type out of form refuses nothing either.
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
            const anonymous = { headers: {}, method: request.method, url: route.path, query: {}, ip: request.ip };
            const { caller } = await resolveCaller(anonymous);
            await limiter.count(caller, 1, reply);
          };
          const answer = await deliver(route, {
            headers: request.headers,
            query: request.query as Record<string, unknown>,
            raw_body: (request.body as Buffer | undefined) ?? EMPTY,
            received_at: Date.now(),
            ip: request.ip,
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

/** A delivery that could not be kept is asked for again: vendors retry on 503, and nothing was acknowledged. */
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
