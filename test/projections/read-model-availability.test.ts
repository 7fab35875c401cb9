import { startServer, type TestServer } from '../support/server';
import { timeLimit } from '../support/patience';
import { until } from '../support/projections';
import { ApiClient } from '../support/vendor-cloud';

/** The projection of API keys has not reached yet what was there when it was first driven. */
describe('a read model that is still being built', () => {
  let server: TestServer;
  let api: ApiClient;
  beforeAll(async () => {
    server = await startServer();
    await server.stop();
    await server.database!.db.query(
      `update checkpoints set built = false, silent_to = '999999999' where projection in ('api-keys', 'chat-live')`,
    );
    server = await server.restart();
    api = new ApiClient(server.base_url, server.credentials.access_token);
  });
  afterAll(() => server?.dispose());

  test('answers 503 and when to ask again, on both protocols, never an empty list; others answer', async () => {
    const list = await api.send('GET', '/v1/api-keys', undefined);
    expect(list).toMatchObject({ status: 503, body: { error: 'INTERNAL_SERVER_ERROR' } });
    expect(list.headers.get('retry-after')).toBe('5');
    const { data, errors } = await api.gql('{ userApiKeys { id } }');
    expect(data?.userApiKeys ?? null).toBeNull();
    expect(errors[0].extensions).toMatchObject({ code: 'INTERNAL_SERVER_ERROR', retry_after_seconds: 5 });
    expect((await api.get('/v1/events')).status).toBe(200);
  });

  test('keeps no command waiting, and answers once it is built', async () => {
    const started = performance.now();
    const key = { label: 'k', permissions: ['events:read'], expires_at: null };
    const made = await api.send('POST', '/v1/api-keys', key);
    expect(made.status).toBe(201);
    expect(performance.now() - started).toBeLessThan(timeLimit(15_000));
    expect(made.headers.get('x-lumio-read-model')).toBe('behind');
    await server.database!.db.query(`update checkpoints set built = true where projection = 'api-keys'`);
    const list = await until(async () => {
      const answer = await api.get('/v1/api-keys');
      return answer.status === 200 && answer;
    });
    expect(list.body.data.map(({ id }: { id: string }) => id)).toContain(made.body.data.id);
  });
});
