import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { ApiClient } from '../support/vendor-cloud';

let server: SharedServer;
let account: MadeAccount;
let operator: ApiClient;
let member: ApiClient;
beforeAll(async () => {
  server = await sharedServer();
  account = await server.account();
  member = new ApiClient(server.base_url, account.access_token);
  operator = new ApiClient(server.base_url, server.credentials.access_token);
});

const watch = (platform: string, channel: string) => operator.send('POST', '/v1/watchlist', { platform, channel });

test('the scope is off at first, changes by its members, and is audited', async () => {
  expect((await operator.get('/v1/crawler/scope')).body.data).toEqual({ enabled: false, platforms: [] });
  const changed = await operator.send('PATCH', '/v1/crawler/scope', { platforms: ['twitch', 'kick', 'twitch'] });
  expect(changed).toMatchObject({ status: 200, body: { data: { enabled: false, platforms: ['twitch', 'kick'] } } });
  expect((await operator.send('PATCH', '/v1/crawler/scope', { enabled: true })).body.data.enabled).toBe(true);
  const gql = await operator.gql('{ crawlerScope { enabled platforms } }');
  expect(gql.data.crawlerScope).toEqual({ enabled: true, platforms: ['twitch', 'kick'] });
  expect(await operator.send('PATCH', '/v1/crawler/scope', { platforms: ['myspace'] })).toMatchObject({
    status: 400,
    body: { message: 'Unsupported platform' },
  });
  expect((await operator.get('/v1/crawler/scope')).body.data.platforms).toEqual(['twitch', 'kick']);
});

test('a channel is watched once, listed and removed', async () => {
  const added = await watch('twitch', '@Somebody');
  expect(added).toMatchObject({ status: 201, body: { data: { platform: 'twitch', channel: 'somebody' } } });
  const { id } = added.body.data;
  expect(await watch('twitch', 'SOMEBODY')).toMatchObject({
    status: 409,
    body: { error: 'CONFLICT', message: 'The channel is already on the watchlist' },
  });
  expect((await watch('myspace', 'somebody')).body.message).toBe('Unsupported platform');
  expect((await watch('twitch', ' @ ')).status).toBe(400);
  expect((await operator.get('/v1/watchlist')).body.data).toEqual([added.body.data]);
  expect((await operator.send('DELETE', `/v1/watchlist/${id}`, undefined)).status).toBe(204);
  expect(await operator.send('DELETE', `/v1/watchlist/${id}`, undefined)).toMatchObject({
    status: 404,
    body: { message: 'Watchlist entry not found' },
  });
  const gql = await operator.gql('{ crawlerWatchlist { total items { id } } }');
  expect(gql.data.crawlerWatchlist).toEqual({ total: 0, items: [] });
});

test('belongs to operators alone', async () => {
  for (const path of ['/v1/crawler/scope', '/v1/watchlist']) expect((await member.get(path)).status).toBe(403);
  expect((await member.send('POST', '/v1/watchlist', { platform: 'kick', channel: 'x' })).status).toBe(403);
  const out = await member.send('PUT', '/v1/crawler/opt-outs/kick/x', { opted_out: true });
  expect(out.status).toBe(403);
});
