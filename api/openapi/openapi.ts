import { chosenText } from '../../access/authorization/guards';
import type { Operation } from '../../app/operation';
import { POPOUT_COOKIE } from '../../access/authentication/tokens/popout-cookie';
import type { RestRoute } from '../../kernel/operations/routes';
import type { Sends, Upload } from '../../kernel/operations/transfers';
import { ERROR_STATUS } from '../../kernel/errors';
import { envelopeOf } from '../rest/envelopes';
import { shapeOf, unwrap } from './schema-shape';
import { failures } from './failures';
import { FIXED_PATHS } from './fixed';
import { jsonSchema } from './schemas';
import { FORM_TYPE } from '../rest/oauth-bodies';
import { webhookPaths } from './webhooks';
import type { WebhookRoute } from '../../ingest/runtime/webhook/webhook';

type Json = Record<string, unknown>;

export interface OpenApiOptions {
  version: string;
  webhooks: readonly Pick<WebhookRoute, 'method' | 'path' | 'described'>[];
  public_url: string | undefined;
}

/** The OpenAPI 3.1 document of all operations and webhooks. Source: spec doc1 §9.3, §9.4. */
export function openApiDocument(operations: readonly Operation[], options: OpenApiOptions): Json {
  const components: Record<string, Json> = { Error: ERROR_SCHEMA };
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    if (!operation.rest) continue;
    const path = (paths[operation.rest.path] ??= {});
    path[operation.rest.method.toLowerCase()] = describe(operation, operation.rest, components);
  }
  Object.assign(paths, FIXED_PATHS, webhookPaths(options.webhooks));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Lumio',
      version: options.version,
      description:
        'Each operation has a GraphQL twin of the same name (`x-graphql`) with the same guard, validation, error codes and messages.',
    },
    servers: [{ url: options.public_url?.replace(/\/+$/, '') ?? '/' }],
    paths: Object.fromEntries(Object.entries(paths).sort(([a], [b]) => (a < b ? -1 : 1))),
    components: {
      schemas: components,
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'A JWT, a personal API key, a service key, a popout token or a system key.',
        },
        oauth_client: {
          type: 'http',
          scheme: 'basic',
          description: 'Id and secret of an OAuth client; the body may carry them instead.',
        },
        popout_session: {
          type: 'apiKey',
          in: 'cookie',
          name: POPOUT_COOKIE,
          description:
            'The session of a popout page, set by the exchange of its token. Counts where no Authorization header ' +
            'came; what changes something then needs an Origin of this site.',
        },
      },
    },
  };
}

const ERROR_SCHEMA: Json = {
  type: 'object',
  properties: {
    error: { type: 'string', enum: Object.keys(ERROR_STATUS) },
    message: { type: 'string' },
    details: { type: 'object', additionalProperties: true },
  },
  required: ['error', 'message'],
};

function describe(operation: Operation, rest: RestRoute, components: Record<string, Json>): Json {
  const shape = shapeOf(operation.input, 'input');
  const inPath = new Set([...rest.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!));
  const inBody = rest.method === 'POST' || rest.method === 'PUT' || rest.method === 'PATCH';
  const parameters: Json[] = [...inPath].map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: shape[name] ? jsonSchema(shape[name], 'input', components) : { type: 'string' },
  }));
  const members = Object.entries(shape).filter(([name]) => !inPath.has(name));
  if (!inBody) {
    for (const [name, schema] of members) {
      const { nullable, optional, def } = unwrap(schema, 'input');
      const header = rest.headers?.[name];
      parameters.push({
        name: header ?? name,
        in: header === undefined ? 'query' : 'header',
        required: !nullable && !optional,
        ...(def.type === 'array' ? { style: 'form', explode: true } : {}),
        schema: jsonSchema(schema, 'input', components),
      });
    }
  }
  if (rest.method !== 'GET') {
    parameters.push({
      name: 'Idempotency-Key',
      in: 'header',
      required: false,
      description: 'Kept for 24 hours: the same request under the same key gets the first answer again.',
      schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[\\x20-\\x7e]+$' },
    });
  }
  const needs = requirements(operation);
  return {
    operationId: operation.name,
    summary: operation.summary,
    description: [operation.summary, ...needs.text].join('\n\n'),
    tags: [rest.path.split('/')[2] ?? 'v1'],
    ...(operation.graphql === null ? {} : { 'x-graphql': operation.name }),
    ...(needs.permissions.length > 0 ? { 'x-permission': single(needs.permissions) } : {}),
    ...(needs.features.length > 0 ? { 'x-feature': single(needs.features) } : {}),
    ...(operation.per_minute === undefined ? {} : { 'x-per-minute': operation.per_minute }),
    security: securityOf(operation, needs.open),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(operation.takes ? { requestBody: multipartOf(operation, operation.takes, components) } : {}),
    ...(inBody && members.length > 0 && !operation.takes
      ? { requestBody: bodyOf(operation, new Set(members.map(([name]) => name)), components) }
      : {}),
    responses: { ...success(operation, rest, components), ...failures(operation, rest) },
  };
}

/** Security requirements. Popout sessions are excluded from operations of a user, an operator or a service. */
function securityOf({ guard: guards, rest }: Operation, open: boolean) {
  if (rest?.oauth) return [{}, { oauth_client: [] }];
  const CLOSED = ['first_party', 'system_key', 'admin_permission', 'user_permission'];
  const popout = guards.every(({ kind }) => !CLOSED.includes(kind));
  return [...(open ? [{}] : []), { bearer: [] }, ...(popout && !open ? [{ popout_session: [] }] : [])];
}

const single = (values: readonly string[]) => (values.length === 1 ? values[0] : values);

function requirements(operation: Operation) {
  const permissions = operation.guard.flatMap((guard) => ('permission' in guard ? [guard.permission] : []));
  const features = operation.guard.flatMap((guard) => (guard.kind === 'feature' ? [guard.flag] : []));
  const kinds = new Set(operation.guard.map((guard) => guard.kind));
  const text = [
    ...permissions.map((name) => `Permission: \`${name}\``),
    ...operation.guard.flatMap((guard) => (guard.kind === 'permission_by' ? [`Permission: ${chosenText(guard)}`] : [])),
    ...features.map((flag) => `Feature: \`${flag}\``),
    ...operation.guard.flatMap((guard) =>
      guard.kind === 'account'
        ? [
            `Rights are those on the account that \`${guard.member}\` names.`,
            ...(guard.active ? ['A session must have it as its active account.'] : []),
          ]
        : [],
    ),
    ...(kinds.has('first_party') ? ['Only for a logged-in user or their own API key.'] : []),
    ...(operation.per_minute === undefined ? [] : [`At most ${operation.per_minute} calls a minute and caller.`]),
    ...(operation.rest?.standard_parameters ? ['Unknown parameters are ignored; a known one twice is 400.'] : []),
    ...(kinds.has('system_key') ? ['Only for a system key.'] : []),
    ...(kinds.has('popout') ? ['Only for a popout token or a session of one.'] : []),
  ];
  return { permissions, features, text, open: operation.guard.some((guard) => guard.kind === 'public') };
}

function bodyOf(operation: Operation, names: ReadonlySet<string>, components: Record<string, Json>): Json {
  const full = jsonSchema(operation.input, 'input', components, true);
  const properties = Object.fromEntries(
    Object.entries((full.properties ?? {}) as Json).filter(([name]) => names.has(name)),
  );
  const needed = ((full.required ?? []) as string[]).filter((name) => names.has(name));
  const aliases = Object.entries(operation.rest?.aliases ?? {});
  for (const [alias, name] of aliases) {
    properties[alias] = { ...(properties[name] as Json), description: `Another name of \`${name}\`` };
  }
  const aliased = new Set(aliases.map(([, name]) => name));
  const required = needed.filter((name) => !aliased.has(name));
  const either = aliases
    .filter(([, name]) => needed.includes(name))
    .map(([alias, name]) => ({ anyOf: [{ required: [name] }, { required: [alias] }] }));
  const content = {
    schema: {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : {}),
      ...(either.length > 0 ? { allOf: either } : {}),
      additionalProperties: operation.rest?.standard_parameters === true,
    },
  };
  return {
    required: needed.length > 0,
    content: { 'application/json': content, ...(operation.rest?.oauth && { [FORM_TYPE]: content }) },
  };
}

function multipartOf(operation: Operation, takes: Upload, components: Record<string, Json>): Json {
  const full = jsonSchema(operation.input, 'input', components, true);
  const { properties = {}, required = [] } = full as { properties?: Json; required?: string[] };
  const description = `${takes.content_types.join(', ')}; at most ${takes.most_bytes} bytes`;
  return {
    required: true,
    content: {
      'multipart/form-data': {
        schema: {
          type: 'object',
          properties: { ...properties, [takes.file]: { description } },
          required: [...required, takes.file],
        },
      },
    },
  };
}

function success(operation: Operation, rest: RestRoute, components: Record<string, Json>): Json {
  if (operation.sends) return sent(operation, operation.sends, rest, components);
  const envelope = envelopeOf(operation);
  if (envelope === null) return { [rest.status]: { description: 'Done; no body.' } };
  const schema = envelope.schema(jsonSchema(rest.answer?.schema ?? operation.output, 'output', components));
  const headers = rest.location && {
    Location: { description: 'Where what was made is.', schema: { type: 'string', format: 'uri-reference' } },
  };
  return {
    [rest.status]: {
      description: 'Success.',
      ...(headers && { headers }),
      content: { 'application/json': { schema } },
    },
    ...(operation.cache_seconds !== undefined && { 304: { description: 'The answer of this ETag still holds.' } }),
  };
}

/** A binary body is a schema without a type (OpenAPI 3.1). */
function sent(operation: Operation, sends: Sends, rest: RestRoute, components: Record<string, Json>): Json {
  if (sends.kind === 'ndjson') {
    const one = jsonSchema(operation.output, 'output', components);
    return {
      [rest.status]: {
        description: 'One JSON document a line. A body that ends without its last chunk was cut off by a failure.',
        content: {
          'application/x-ndjson': { schema: { type: 'string' }, 'x-line': one },
          ...(sends.csv && { 'text/csv': { schema: { type: 'string' } } }),
        },
      },
    };
  }
  const content = Object.fromEntries(sends.content_types.map((type) => [type, { schema: {} }]));
  const header = (description: string) => ({ description, schema: { type: 'string' } });
  if (sends.kind === 'attachment') {
    const headers = { 'Content-Disposition': header('The name of the file.') };
    return { [rest.status]: { description: 'A file.', headers, content } };
  }
  const headers = { ETag: header('Changes with the content.'), 'Accept-Ranges': header('`bytes`') };
  return {
    [rest.status]: { description: 'The whole content.', headers, content },
    206: {
      description: 'The part that was asked for.',
      headers: { 'Content-Range': header('Where it lies.') },
      content,
    },
    304: { description: 'The content is the one that the client has.' },
    416: { description: 'BAD_REQUEST: the range lies outside of the content.' },
  };
}
