import { buildSchema, type GraphQLObjectType, printSchema, validateSchema } from 'graphql';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { Operation } from '../../access/operation';
import { OPERATIONS } from '../../bin/areas';
import { startServer, type TestServer } from '../support/server';

/** The documents that describe the running server, held against the operations that it is made of. */
const REST_DOCUMENT = '/v1/api-doc/openapi.json';
const EXPLORERS = [REST_DOCUMENT, '/v1/openapi.json', '/v1/swagger-ui/', '/v1/swagger-ui', '/v1/graphiql'];

describe('development', () => {
  let server: TestServer;
  let text: string;
  let document: any;

  beforeAll(async () => {
    server = await startServer();
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
        open: operation.guard.every((guard) => guard.kind === 'public'),
        success: true,
      };
      return JSON.stringify(shown) === JSON.stringify(wanted) ? [] : [{ shown, wanted }];
    });
    expect(missing).toEqual([]);
  });

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
    for (const { path, method } of routes) {
      const url = server.base_url + path.replaceAll(/\{\w+\}/g, '0190a000-0000-7000-8000-000000000001');
      const unsafe = method === 'POST' || method === 'PATCH';
      const body = JSON.stringify({ refresh_token: 'made up' });
      const json = { headers: { 'content-type': 'application/json' }, body };
      const { status } = await fetch(url, { method, ...(unsafe ? json : {}) });
      const { responses } = document.paths[path][method.toLowerCase()];
      if (status === 404 || status === 405 || status >= 500 || !(status in responses)) {
        unknown.push([method, path, status]);
      }
    }
    expect(unknown).toEqual([]);
    expect(routes.length).toBeGreaterThan(10);
  });
});

test('production shows the SDL, which every client needs, and neither explorers nor the OpenAPI document', async () => {
  const server = await startServer({ env: { LUMIO_ENV: 'production', LUMIO_PUBLIC_URL: 'https://api.example' } });
  try {
    const statuses = await Promise.all(
      EXPLORERS.map(async (path) => [path, (await fetch(server.base_url + path, { redirect: 'manual' })).status]),
    );
    expect(statuses).toEqual(EXPLORERS.map((path) => [path, 404]));
    expect((await fetch(`${server.base_url}/v1/schema`)).status).toBe(200);
    const answer = await fetch(`${server.base_url}/v1/gql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"query":"{ __schema { types { name } } }"}',
    });
    const refusal = (await answer.json()) as { errors: { extensions: { code: string } }[] };
    expect(refusal.errors[0]!.extensions.code).toBe('VALIDATION_ERROR');
  } finally {
    await server.dispose();
  }
});

const namesOf = (kind: Operation['kind']): string[] =>
  OPERATIONS.filter((operation) => operation.kind === kind)
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
