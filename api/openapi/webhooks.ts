import type { WebhookRoute } from '../../ingest/runtime/webhook/webhook';
import { HEAD_TOO_LARGE, RETRY_AFTER } from './failures';

type Json = Record<string, unknown>;

/**
 * The OpenAPI paths of vendors' webhooks. A body is described as signed bytes, because its shape is the vendor's.
 * Source: spec doc1 §9.4, doc3 §4.2.
 */
export function webhookPaths(
  routes: readonly Pick<WebhookRoute, 'method' | 'path' | 'described'>[],
): Record<string, Json> {
  const paths: Record<string, Json> = {};
  for (const { method, path, described } of routes) {
    if (!described) continue;
    const vendor = path.split('/')[3]!;
    (paths[path] ??= {})[method.toLowerCase()] = method === 'GET' ? challenge(vendor) : delivery(vendor);
  }
  return paths;
}

const error = (description: string): Json => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
});

const described = (vendor: string, what: string, summary: string): Json => ({
  operationId: `${vendor.replaceAll(/-(\w)/g, (_dash, letter: string) => letter.toUpperCase())}${what}`,
  summary,
  tags: ['webhooks'],
  security: [{}],
});

function delivery(vendor: string): Json {
  return {
    ...described(vendor, 'Webhook', `Takes in signed deliveries of ${vendor}, each with one effect.`),
    requestBody: { required: true, content: { '*/*': { schema: { description: "The vendor's bytes, as signed." } } } },
    responses: {
      200: {
        description: 'Stored, or known already.',
        content: {
          'application/json': {
            schema: { type: 'object', properties: { success: { const: true } }, required: ['success'] },
          },
        },
      },
      400: error('BAD_REQUEST: a header that the vendor always sends is missing or out of form'),
      401: {
        ...error('UNAUTHORIZED: no valid signature'),
        headers: { 'WWW-Authenticate': { description: 'What is asked for.', schema: { const: 'Signature' } } },
      },
      403: error('FORBIDDEN: verification is not configured'),
      408: error('BAD_REQUEST: nothing of the body arrived in time'),
      413: error('BAD_REQUEST: the body is larger than 1 MiB'),
      429: {
        ...error('RATE_LIMIT_EXCEEDED: too many refused deliveries from this address'),
        headers: RETRY_AFTER,
      },
      431: HEAD_TOO_LARGE,
      503: {
        ...error(
          'DATABASE_ERROR, or INTERNAL_SERVER_ERROR where the broker is unavailable or bodies have no room: it could ' +
            'not be stored; deliver it again after `Retry-After`',
        ),
        headers: RETRY_AFTER,
      },
    },
  };
}

function challenge(vendor: string): Json {
  return {
    ...described(vendor, 'WebhookChallenge', `Echoes \`hub.challenge\` to the hub of ${vendor}.`),
    parameters: [{ name: 'hub.challenge', in: 'query', required: true, schema: { type: 'string', minLength: 1 } }],
    responses: {
      200: { description: 'The challenge.', content: { 'text/plain': { schema: { type: 'string' } } } },
      400: error('BAD_REQUEST: no challenge'),
      431: HEAD_TOO_LARGE,
    },
  };
}
