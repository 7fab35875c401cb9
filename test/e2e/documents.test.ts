import { ERROR_STATUS } from '../../kernel/errors';
import { buildSchema, type GraphQLObjectType, printSchema, validateSchema } from 'graphql';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020';
import type { Operation } from '../../app/operation';
import { shapeOf, unwrap } from '../../api/openapi/schema-shape';
import { OPERATIONS } from '../../bin/areas';
import { ACCOUNT_PERMISSIONS } from '../../domain/common/permissions';
import { startServer, type TestServer } from '../support/server';

/** The documents that describe the running server, held against the operations that it is made of. */
const REST_DOCUMENT = '/v1/api-doc/openapi.json';

describe('development', () => {
  let server: TestServer;
  let text: string;
  let document: any;

  beforeAll(async () => {
    // Each anonymous caller has an address of its own: there are more routes than one may ask in a minute.
    server = await startServer({ env: { LUMIO_TRUSTED_PROXIES: 'loopback' } });
    text = await (await fetch(server.base_url + REST_DOCUMENT)).text();
    document = JSON.parse(text);
  });
  afterAll(() => server?.dispose());

  test('the SDL is a valid schema with every operation as the query or mutation that it is', async () => {
    const response = await fetch(`${server.base_url}/v1/schema`);
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    const schema = buildSchema(await response.text());
    expect(validateSchema(schema)).toEqual([]);
    const names = (type: GraphQLObjectType | null | undefined) => Object.keys(type?.getFields() ?? {}).sort();
    expect(names(schema.getQueryType())).toEqual(namesOf('query'));
    expect(names(schema.getMutationType())).toEqual(namesOf('command'));
    expect(OPERATIONS.length).toBeGreaterThan(10);
    expect(printSchema(schema)).toContain('events:create');
    expect(printSchema(schema)).not.toMatch(/doc[123]? ?§/);
  });

  test('the OpenAPI document is valid 3.1, and the same at both of its addresses', async () => {
    const other = await fetch(`${server.base_url}/v1/openapi.json`);
    expect(await other.text()).toBe(text);
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(validated(text)).toEqual({ valid: true, version: '3.1' });
    expect(validated(text.replace('"title":', '"titel":'))).toMatchObject({ valid: false });
  });

  test('every REST operation is in it, with its permissions and its feature', () => {
    const missing = OPERATIONS.filter(({ rest }) => rest !== null).flatMap((operation) => {
      const found = document.paths[operation.rest!.path]?.[operation.rest!.method.toLowerCase()];
      const shown = found && {
        name: found.operationId,
        permission: [found['x-permission'] ?? []].flat(),
        feature: [found['x-feature'] ?? []].flat(),
        open: found.security.some((way: object) => Object.keys(way).length === 0),
        success: String(operation.rest!.status) in found.responses,
      };
      const wanted = {
        name: operation.name,
        permission: operation.guard.flatMap((guard) => ('permission' in guard ? [guard.permission] : [])),
        feature: operation.guard.flatMap((guard) => (guard.kind === 'feature' ? [guard.flag] : [])),
        open: operation.guard.some((guard) => guard.kind === 'public'),
        success: true,
      };
      return JSON.stringify(shown) === JSON.stringify(wanted) ? [] : [{ shown, wanted }];
    });
    expect(missing).toEqual([]);
  });

  test('each operation lists the errors that it declares, and no code that it cannot answer', () => {
    const ours = ['BAD_REQUEST', 'VALIDATION_ERROR', 'RATE_LIMIT_EXCEEDED', 'INTERNAL_SERVER_ERROR', 'DATABASE_ERROR'];
    const faults = OPERATIONS.filter(({ rest }) => rest !== null).flatMap((operation) => {
      const { responses } = document.paths[operation.rest!.path][operation.rest!.method.toLowerCase()];
      const listed = new Set(
        [...JSON.stringify(responses).matchAll(/"enum":(\["[A-Z_",]+\])/g)].flatMap(([, codes]) => JSON.parse(codes!)),
      );
      const declared = Object.values(operation.errors);
      const guarded = operation.guard.some(({ kind }) => kind === 'public') ? [] : ['UNAUTHORIZED', 'FORBIDDEN'];
      const possible = new Set([
        ...ours,
        ...guarded,
        ...(operation.guard.some(({ kind }) => kind === 'feature') ? ['FEATURE_DISABLED'] : []),
        ...(operation.guard.some(({ kind }) => kind === 'account') ? ['NOT_FOUND'] : []),
        ...(operation.rest!.method === 'GET' ? [] : ['CONFLICT']),
        ...declared.map(({ code }) => code),
      ]);
      const shown = Object.entries(operation.errors).filter(
        ([name, { code, rest_code: error = code, status = ERROR_STATUS[code], text: message, ...error_of }]) =>
          JSON.stringify(responses[status]?.content['application/json'].examples?.[name]) !==
          JSON.stringify({ value: error_of.rest_body ?? { error, message } }),
      );
      return [
        ...[...listed].filter((code) => !possible.has(code)).map((code) => `${operation.name} lists ${code}`),
        ...[...possible].filter((code) => !listed.has(code)).map((code) => `${operation.name} hides ${code}`),
        ...shown.map(([name]) => `${operation.name} does not show ${name}`),
      ];
    });
    expect(faults).toEqual([]);
    expect(document.paths['/v1/api-keys/{id}'].patch.responses['404'].description).toBe('NOT_FOUND: API key not found');
  });

  test('no text of it, or of the SDL, cites the specification', async () => {
    const sdl = await (await fetch(`${server.base_url}/v1/schema`)).text();
    for (const published of [text, sdl]) {
      expect(published.match(/.{0,60}(§|\bdoc[123]\b|\bspec(ification)?\b|rulings).{0,60}/gi)).toBeNull();
    }
    expect(text).toContain('Liveness probe.');
  });

  test('it offers the popout cookie where a popout page may come, and nowhere else', () => {
    expect(Object.keys(document.components.securitySchemes)).toEqual(['bearer', 'oauth_client', 'popout_session']);
    expect(document.paths['/v1/auth/token'].post.security).toEqual([{}, { oauth_client: [] }]);
    const { get: permissions } = document.paths['/v1/tokens/me'];
    const { get: keys } = document.paths['/v1/api-keys'];
    expect([permissions.security, keys.security]).toEqual([[{ bearer: [] }, { popout_session: [] }], [{ bearer: [] }]]);
  });

  test('what the validator holds a text to is shown: format, enum or pattern', () => {
    const hidden: string[] = [];
    let rules = 0;
    for (const { name, input, rest } of OPERATIONS) {
      if (rest === null) continue;
      for (const [member, schema] of Object.entries(shapeOf(input, 'input'))) {
        const { def } = unwrap(schema, 'input');
        const text = def.type === 'array' ? unwrap(def.element!, 'input') : { schema, def };
        const checks = (text.def.checks ?? []).map(({ _zod }) => _zod.def.check);
        const ruled = text.def.format !== undefined || checks.includes('custom') || checks.includes('string_format');
        if (text.def.type !== 'string' || !ruled) continue;
        rules += 1;
        const shown = shownMember(rest.path, rest.method, member);
        const said = JSON.stringify(shown ?? null);
        if (!/"(format|enum|pattern)":/.test(said)) hidden.push(`${name}.${member}: ${said}`);
      }
    }
    expect(hidden).toEqual([]);
    expect(rules).toBeGreaterThan(10);
    const key = document.paths['/v1/api-keys'].post.requestBody.content['application/json'].schema.properties;
    expect(key.permissions.items.enum).toEqual(ACCOUNT_PERMISSIONS);
    const { expires_at, last_used_at } = document.components.schemas.UserApiKey.properties;
    expect(JSON.stringify([expires_at, last_used_at])).toMatch(/date-time.*date-time/);
  });

  test('an alias of a member is in it, and one of both names is required', () => {
    const { schema } = document.paths['/v1/events/emit'].post.requestBody.content['application/json'];
    expect(schema.properties.type).toEqual({
      ...schema.properties.event_type,
      description: 'Another name of `event_type`',
    });
    const valid = new Ajv2020({ strict: false, formats: { uuid: true } }).compile(schema);
    expect([{ type: 'a:b' }, { event_type: 'a:b' }, {}, { type: 'none' }].map((body) => valid(body))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test('what a 401 and a 201 carry beside their bodies is in it', () => {
    const { responses } = document.paths['/v1/api-keys'].post;
    expect(Object.keys(responses['401'].headers)).toEqual(['WWW-Authenticate']);
    expect(Object.keys(responses['201'].headers)).toEqual(['Location']);
    for (const [path, method] of [
      ['/v1/webhooks/kick', 'post'],
      ['/v1/ws', 'get'],
    ] as const)
      expect([path, Object.keys(document.paths[path][method].responses['401'].headers ?? {})]).toEqual([
        path,
        ['WWW-Authenticate'],
      ]);
  });

  const shownMember = (path: string, method: string, member: string): unknown => {
    const { parameters = [], requestBody } = document.paths[path][method.toLowerCase()];
    return (
      parameters.find((one: { name: string }) => one.name === member)?.schema ??
      requestBody?.content['application/json'].schema.properties[member]
    );
  };

  test('vendors’ webhooks and the fixed routes are in it', () => {
    const webhooks = ['kick', 'shopify', 'trovo', 'youtube'].map((vendor) => `/v1/webhooks/${vendor}`);
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining([...webhooks, '/v1', '/v1/health', '/v1/schema', '/v1/gql', '/v1/ws']),
    );
    expect(Object.keys(document.paths['/v1/webhooks/youtube']).sort()).toEqual(['get', 'post']);
    const ids = Object.values(document.paths as Record<string, Record<string, { operationId: string }>>)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId }) => operationId);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  test('a plain request for the WebSocket is told to upgrade', async () => {
    const answer = await fetch(`${server.base_url}/v1/ws`);
    expect([answer.status, answer.headers.get('upgrade')]).toEqual([426, 'websocket']);
    expect(await answer.json()).toEqual({
      error: 'BAD_REQUEST',
      message: 'This address speaks WebSocket: upgrade the connection',
    });
  });

  test('nothing is in it that does not answer, or answers a status that is not in it', async () => {
    const routes = Object.entries(document.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() })),
    );
    const unknown: unknown[] = [];
    for (const [n, { path, method }] of routes.entries()) {
      const url = server.base_url + path.replaceAll(/\{\w+\}/g, '0190a000-0000-7000-8000-000000000001');
      const unsafe = method === 'POST' || method === 'PATCH';
      const body = JSON.stringify({ refresh_token: 'made up' });
      const from = { 'x-forwarded-for': `198.51.100.${n % 250}` };
      const json = { headers: { ...from, 'content-type': 'application/json' }, body };
      const answer = await fetch(url, { method, ...(unsafe ? json : { headers: from }) });
      const { status } = answer;
      const { responses } = document.paths[path][method.toLowerCase()];
      // An operation names the thing that it has not found: an invite, a font.
      const absent = status === 404 && ((await answer.json()) as { message: string }).message === 'Not found';
      if (absent || status === 405 || status >= 500 || !(status in responses)) {
        unknown.push([method, path, status]);
      }
    }
    expect(unknown).toEqual([]);
    expect(routes.length).toBeGreaterThan(10);
  });
});

const namesOf = (kind: Operation['kind']): string[] =>
  OPERATIONS.filter((operation) => operation.kind === kind && operation.graphql !== null)
    .map(({ name }) => name)
    .sort();

/** The validator is an ES module only, which jest cannot load. */
function validated(document: string): { valid: boolean; version: string; errors?: unknown } {
  const script = `import { readFileSync } from 'node:fs';
    import { Validator } from '@seriousme/openapi-schema-validator';
    const validator = new Validator();
    const { valid, errors } = await validator.validate(JSON.parse(readFileSync(0, 'utf8')));
    console.log(JSON.stringify({ valid, version: validator.version, errors }));`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    cwd: join(__dirname, '../..'),
    input: document,
    encoding: 'utf8',
  });
  return JSON.parse(output);
}
