import { startServer } from '../../support/server';

/** The documents that describe the running server, held against the operations that it is made of. */
const REST_DOCUMENT = '/v1/api-doc/openapi.json';
const EXPLORERS = [
  REST_DOCUMENT,
  '/v1/openapi.json',
  '/v1/swagger-ui/',
  '/v1/swagger-ui',
  '/v1/graphiql',
  '/',
  '/live.js',
  '/v1/asyncapi.json',
];

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
