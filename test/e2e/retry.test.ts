import pg from 'pg';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

/** A client that never got its answer sends its command again, under the same Idempotency-Key, to what has been started since. */
describe('killed between an append and its answer', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer();
  });
  afterAll(() => server?.dispose());

  test('the retry is answered at once by what was stored, and nothing is stored twice', async () => {
    const { db, url } = server.database!;
    const { access_token } = server.credentials;
    const made = await new ApiClient(server.base_url, access_token).send('POST', '/v1/api-keys', {
      label: 'Bot',
      permissions: ['events:read'],
      expires_at: null,
    });
    const { id } = made.body.data as { id: string };
    const rename = (base_url: string) =>
      new ApiClient(base_url, access_token).send(
        'PATCH',
        `/v1/api-keys/${id}`,
        { label: 'Renamed' },
        { 'idempotency-key': 'rename-1' },
      );
    const renames = () => db.query("select 1 from domain_events where type = 'api_key:renamed'");

    // The answer waits for a read model that cannot move.
    const blocker = new pg.Client({ connectionString: url });
    await blocker.connect();
    await blocker.query("begin; select 1 from checkpoints where projection = 'api-keys' for update");
    const lost = rename(server.base_url).then(
      () => 'answered',
      () => 'cut',
    );
    await eventually(async () => ((await renames()).length > 0 ? true : undefined), 'the append');
    await server.kill();
    expect(await lost).toBe('cut');
    await blocker.end();

    server = await server.restart();
    const started = Date.now();
    const answer = await eventually(async () => {
      const again = await rename(server.base_url);
      return again.status === 409 ? undefined : again;
    }, 'an answer');
    expect(answer.status).toBe(200);
    expect(answer.body.data.label).toBe('Renamed');
    expect(Date.now() - started).toBeLessThan(5_000);
    expect(await renames()).toHaveLength(1);
    const replayed = await rename(server.base_url);
    expect(replayed.body).toEqual(answer.body);
  });
});
