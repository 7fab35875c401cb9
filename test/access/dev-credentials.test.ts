import { statSync } from 'node:fs';
import { join } from 'node:path';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';

let server: TestServer;
beforeAll(async () => void (server = await startServer()));
afterAll(() => server?.dispose());

test('credentials lie in a file for their owner alone', () => {
  for (const name of ['dev-credentials.json', 'dev-secrets.json']) {
    expect(statSync(join(server.data_dir, name)).mode & 0o777).toBe(0o600);
  }
});

test('a second start shows the same demo data with new tokens', async () => {
  const before = server.credentials;
  await server.stop();
  server = await server.restart();
  const after = server.credentials;
  const of = async (token: string) => (await new ApiClient(server.base_url, token).get('/v1/tokens/me')).body.data;
  expect([after.account_id, after.user_api_key, after.system_key, after.connections, after.other.account_id]).toEqual([
    before.account_id,
    before.user_api_key,
    before.system_key,
    before.connections,
    before.other.account_id,
  ]);
  expect((await of(after.access_token)).admin_permissions).toHaveLength(90);
  expect((await of(after.user_api_key)).permissions).toHaveLength(123);
  expect((await of(after.other.access_token)).admin_permissions).toEqual([]);
});
