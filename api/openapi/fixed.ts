import { AnswerTooLarge } from '../http/answers/answer-size';
import { GENERIC_MESSAGES } from '../http/answers/errors';
import { HEAD_TOO_LARGE, RETRY_AFTER } from './failures';

type Json = Record<string, unknown>;

const object = (properties: Json, required = Object.keys(properties)): Json => ({
  type: 'object',
  properties,
  required,
});
const text: Json = { type: 'string' };
const count: Json = { type: 'integer', minimum: 0 };
const json = (schema: Json): Json => ({ 'application/json': { schema } });
const sent = (description: string, schema: Json): Json => ({ description, content: json(schema) });

const STATE: Json = { enum: ['healthy', 'degraded', 'unhealthy'] };
const HEALTH = object({
  data: object({
    status: STATE,
    version: text,
    uptime_seconds: count,
    services: {
      type: 'object',
      additionalProperties: object({ status: STATE, latency_ms: { type: 'number', minimum: 0 } }),
    },
    websocket: object({ sessions: count, channels: count }),
  }),
  _links: object({ self: text }),
});

const GRAPHQL_ERRORS: Json = {
  type: 'array',
  items: object(
    {
      message: text,
      path: { type: 'array', items: { type: ['string', 'integer'] } },
      locations: { type: 'array', items: object({ line: count, column: count }) },
      extensions: object({ code: text }),
    },
    ['message', 'extensions'],
  ),
};
const REFUSED = object({ errors: GRAPHQL_ERRORS });
const NO_ROOM = `INTERNAL_SERVER_ERROR: ${GENERIC_MESSAGES.INTERNAL_SERVER_ERROR}`;

const upgradeRefusal = (codes: readonly string[]) => object({ error: { enum: codes }, message: text });

/**
 * The OpenAPI paths that are not operations: probes, the SDL, GraphQL and the WebSocket upgrade. Source: spec doc1 §1,
 * §9.4, doc2 §2.16, §4.2, §4.3, doc3 §4.1.
 */
export const FIXED_PATHS: Readonly<Record<string, Json>> = {
  '/v1': {
    get: {
      ...described('live', 'Liveness probe.'),
      responses: { 200: sent('The process serves.', object({ status: { const: 'alive' } })), 431: HEAD_TOO_LARGE },
    },
  },
  '/v1/health': {
    get: {
      ...described('health', 'State of the service and of what it depends on.'),
      responses: {
        200: sent('All or some of what it depends on is there.', HEALTH),
        431: HEAD_TOO_LARGE,
        503: sent('Nothing of what it depends on is there.', HEALTH),
      },
    },
  },
  '/v1/schema': {
    get: {
      ...described('graphqlSchema', 'The GraphQL SDL.'),
      responses: {
        200: { description: 'SDL.', content: { 'text/plain': { schema: text } } },
        429: { ...sent('RATE_LIMIT_EXCEEDED', { $ref: '#/components/schemas/Error' }), headers: RETRY_AFTER },
        431: HEAD_TOO_LARGE,
        503: { ...sent(NO_ROOM, { $ref: '#/components/schemas/Error' }), headers: RETRY_AFTER },
      },
    },
  },
  '/v1/gql': {
    post: {
      ...described('graphql', 'GraphQL: one operation, never a batch.'),
      security: [{}, { bearer: [] }],
      requestBody: {
        required: true,
        content: json(
          object(
            {
              query: { type: 'string', minLength: 1 },
              operationName: { type: ['string', 'null'] },
              variables: { type: ['object', 'null'] },
            },
            ['query'],
          ),
        ),
      },
      responses: {
        200: sent(
          'Executed; failures of single fields are in `errors`.',
          object({ data: { type: ['object', 'null'] }, errors: GRAPHQL_ERRORS }, []),
        ),
        400: sent(
          `Not executed: the document, its variables or its size are not in order. Or: ${new AnswerTooLarge().message}`,
          REFUSED,
        ),
        408: sent('BAD_REQUEST: nothing of the body arrived in time', REFUSED),
        413: sent('BAD_REQUEST: the body is larger than 1 MiB', REFUSED),
        415: sent('BAD_REQUEST: the content type is not application/json', REFUSED),
        429: { ...sent('RATE_LIMIT_EXCEEDED', REFUSED), headers: RETRY_AFTER },
        431: HEAD_TOO_LARGE,
        503: { ...sent(NO_ROOM, REFUSED), headers: RETRY_AFTER },
      },
    },
  },
  '/v1/ws': {
    get: {
      ...described('websocket', 'The WebSocket of live channels, JSON both ways; `/v1/asyncapi.json` describes it.'),
      security: [{}, { bearer: [] }],
      parameters: [
        {
          name: 'token',
          in: 'query',
          required: false,
          description: 'A JWT or a browser-source token, where no header can be sent. Keys go in the header only.',
          schema: text,
        },
      ],
      responses: {
        101: { description: 'Upgraded; the server begins with `welcome`.' },
        401: {
          ...sent('The credential that was presented fails.', upgradeRefusal(['TOKEN_EXPIRED', 'UNAUTHORIZED'])),
          headers: { 'WWW-Authenticate': { description: 'Why the credential did not count.', schema: text } },
        },
        403: sent('The page that asks is of another origin.', upgradeRefusal(['FORBIDDEN'])),
        426: sent('BAD_REQUEST: not an upgrade to WebSocket 13', { $ref: '#/components/schemas/Error' }),
        429: {
          ...sent('Too many upgrades, or sockets of the caller.', upgradeRefusal(['RATE_LIMIT_EXCEEDED'])),
          headers: RETRY_AFTER,
        },
        431: HEAD_TOO_LARGE,
      },
    },
  },
};

function described(operationId: string, summary: string): Json {
  return { operationId, summary, tags: ['v1'], security: [{}] };
}
