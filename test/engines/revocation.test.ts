import { randomBytes } from 'node:crypto';
import { testDatabase, type TestDatabase } from '../support/database';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { inTime, probeOf, promised } from '../support/patience';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { type RedisServer, startRedis } from './support/redis';

/** Revocations travel by the database. Source: spec rulings, "revocation times". */
describe('while Redis is away', () => {
  let redis: RedisServer;
  let database: TestDatabase;
  let here: TestServer;
  let there: TestServer;
  let owner: ApiClient;

  beforeAll(async () => {
    redis = await startRedis();
    database = await testDatabase(4);
    const env = {
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
      LUMIO_REDIS__URL: redis.url,
    };
    here = await startServer({ embedded: true, env });
    there = await startServer({ embedded: true, env });
    owner = new ApiClient(here.base_url, here.credentials.access_token);
  });
  afterAll(async () => {
    await Promise.all([here?.dispose(), there?.dispose()]);
    await database?.drop();
    await redis?.stop();
  });

  test('what is ended on one node is over on the other, and its sockets are cut', async () => {
    const wanted = { label: 'Bot', permissions: ['events:read'] };
    const made = async (path: string) => {
      const { id, key, token } = (await owner.send('POST', path, wanted)).body.data;
      return { token: (key ?? token) as string, end: () => owner.send('DELETE', `${path}/${id}`, undefined) };
    };
    const end_session = () => owner.send('POST', '/v1/auth/logout-session', {});
    const held = [
      await made('/v1/api-keys'),
      await made('/v1/service-keys'),
      await made('/v1/tokens'),
      await made('/v1/admin/system-keys'),
      // Last: the others are ended by it.
      { token: here.credentials.access_token, end: end_session },
    ];
    const sockets = await Promise.all(
      held.map(({ token }) => Client.open(there.ws_url, null, { headers: { authorization: `Bearer ${token}` } })),
    );
    const answered = async (node: TestServer, token: string) =>
      (await new ApiClient(node.base_url, token).get('/v1/tokens/me')).status;
    for (const { token } of held) expect(await answered(there, token)).toBe(200);
    await redis.kill();
    await eventually(async () => {
      const { body } = await new ApiClient(there.base_url, '').get('/v1/health');
      return body.data.status === 'degraded' || undefined;
    }, 'the loss to be seen');

    for (const [index, { token, end }] of held.entries()) {
      const { status } = await end();
      expect(status).toBeLessThan(300);
      expect(await answered(here, token)).toBe(401);
      await promised(
        async () => (await answered(there, token)) === 401 || undefined,
        'its end there',
        1_000,
        probeOf(there),
      );
      expect(await inTime(sockets[index]!.closed(), there)).toBe(4401);
    }
  });
});
