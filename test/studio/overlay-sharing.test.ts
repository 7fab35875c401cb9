import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient } from '../support/vendor-cloud';

let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
let editor: ApiClient;
let editor_id: string;
let editor_token: string;
beforeAll(async () => {
  server = await startServer({ env: { LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  const { account_id } = server.credentials;
  const limits = [{ name: 'max_overlays', value: 50 }];
  await owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, { features: [], limits });
  const permissions = ['overlays:read', 'overlays:edit', 'overlays:delete', 'overlays:create'];
  const role_id = (await owner.send('POST', '/v1/roles', { name: 'Editors', permissions })).body.data.id;
  const login = { provider: 'twitch', provider_id: 'ed', access_token: 'development:ed' };
  const nobody = new ApiClient(server.base_url, '');
  const { token } = (await nobody.send('POST', '/v1/auth/token/exchange', login)).body;
  editor = new ApiClient(server.base_url, token);
  const { code } = (await owner.send('POST', `/v1/accounts/${account_id}/invites`, { role_id })).body.data;
  expect((await editor.send('POST', `/v1/invites/${code}/accept`, {})).status).toBeLessThan(300);
  await editor.send('PATCH', '/v1/users/me', { active_account_id: account_id });
  editor_token = (await nobody.send('POST', '/v1/auth/token/exchange', login)).body.token;
  editor = new ApiClient(server.base_url, editor_token);
  editor_id = (await editor.get('/v1/users/me')).body.data.id;
});
afterAll(() => server?.dispose());

const make = async (body: object = {}) => (await owner.send('POST', '/v1/overlays', body)).body.data;
const in_an_hour = () => new Date(Date.now() + 3_600_000).toISOString();
const share = (overlay_id: string, expires_at: unknown = in_an_hour()) =>
  owner.send('POST', '/v1/overlay-shared-links', { overlay_id, expires_at });
const opens = async (token: string, key: string) => {
  const client = await Client.open(server.ws_url, token);
  expect((await client.subscribe(`overlay:${key}`)).type).toBe('subscribed');
  return client;
};

describe('shared links', () => {
  test('open the overlay until they are deleted, and survive a rotation', async () => {
    const { id, key } = await make();
    const made = await share(id);
    expect(made).toMatchObject({
      status: 201,
      body: { data: { overlay_id: id, access_token: expect.stringMatching(/^lm_share_[0-9a-f]{64}$/) } },
    });
    const { access_token, ...link } = made.body.data;
    const page = await opens(access_token, key);
    await owner.send('POST', `/v1/overlays/${id}/rotate-token`, {});
    const listed = await owner.get('/v1/overlay-shared-links');
    expect(listed.body.data).toEqual([link]);
    const again = await opens(access_token, key);
    expect((await owner.send('DELETE', `/v1/overlay-shared-links/${link.id}`, undefined)).status).toBe(204);
    expect([await page.closed(), await again.closed()]).toEqual([4401, 4401]);
    expect((await owner.send('DELETE', `/v1/overlay-shared-links/${link.id}`, undefined)).status).toBe(404);
    expect((await owner.get('/v1/overlay-shared-links')).body.data).toEqual([]);
  });

  test.each([
    [null],
    [undefined],
    ['soon'],
    ['2020-01-01T00:00:00Z'],
    // In UTC it is the year 10000.
    ['9999-12-31T23:59:59-12:00'],
  ])('end at %j: refused', async (expires_at) => {
    const { id } = await make();
    const answer = await owner.send('POST', '/v1/overlay-shared-links', { overlay_id: id, expires_at });
    expect(answer.status).toBe(400);
  });

  test('are at most twenty for an overlay, also in a race; editor shares are not counted', async () => {
    const { id, key } = await make();
    const answers = await Promise.all(Array.from({ length: 23 }, () => share(id)));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    expect(answers.find(({ status }) => status === 409)!.body.error).toBe('CONFLICT');
    const editing = await editor.send('POST', `/v1/overlays/${id}/editor-share`, {});
    expect(editing).toMatchObject({ status: 201, body: { data: { expires_at: expect.any(String) } } });
    (await opens(editing.body.data.access_token, key)).end();
    expect((await owner.get('/v1/overlay-shared-links')).body.data).toHaveLength(20);
  });
});

describe('folders', () => {
  const folder = async (name: string, parent_id: string | null = null): Promise<string> => {
    const made = await owner.send('POST', '/v1/overlay-folders', { name, parent_id });
    expect(made.status).toBe(201);
    return made.body.data.id;
  };
  const move = (id: string, parent_id: string | null) =>
    owner.send('PATCH', `/v1/overlay-folders/${id}`, { parent_id });

  test('have no cycle, also from concurrent moves', async () => {
    const [a, b] = [await folder('a'), await folder('b')];
    const moved = await Promise.all([move(a, b), move(b, a)]);
    expect(moved.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await move(a, a)).status).toBe(409);
    expect((await stranger.send('PATCH', `/v1/overlay-folders/${a}`, { name: 'x' })).status).toBe(404);
  });

  test('give their contents to their parent when they are deleted', async () => {
    const top = await folder('top');
    const middle = await folder('middle', top);
    const below = await folder('below', middle);
    const overlay = await make({ folder_id: middle });
    expect((await owner.send('DELETE', `/v1/overlay-folders/${middle}`, undefined)).status).toBe(204);
    const folders = (await owner.get('/v1/overlay-folders')).body.data;
    expect(folders.find(({ id }: { id: string }) => id === below)).toMatchObject({ parent_id: top });
    expect((await owner.get(`/v1/overlays/${overlay.id}`)).body.data.folder_id).toBe(top);
    expect((await owner.send('PATCH', `/v1/overlays/${overlay.id}`, { folder_id: middle })).status).toBe(404);
  });
});

describe('access entries', () => {
  const entry = (id: string, body: object, user_id = editor_id) =>
    owner.send('PUT', `/v1/overlays/${id}/access/${user_id}`, body);

  test('narrow what a member may do, and hide an overlay with its links and presence', async () => {
    const { id, key } = await make();
    await share(id);
    const rename = () => editor.send('PATCH', `/v1/overlays/${id}`, { name: 'Mine' });
    expect((await rename()).status).toBe(200);
    expect((await entry(id, { role: 'viewer' })).body.data).toMatchObject({ overlay_id: id, role: 'viewer' });
    expect((await rename()).status).toBe(403);
    const layers = { revision: 0, layers: [] };
    expect((await editor.send('PUT', `/v1/overlays/${id}/layers`, layers)).status).toBe(403);
    const client = await Client.open(server.ws_url, editor_token);
    expect((await client.subscribe(`presence:overlay:${key}`)).type).toBe('subscribed');
    expect((await entry(id, { role: 'none' })).status).toBe(200);
    await client.next(({ code }) => code === 'UNAUTHORIZED', 'the end of presence');
    for (const path of [`/v1/overlays/${id}`, `/v1/overlays/${id}/layers`])
      expect([path, (await editor.get(path)).status]).toEqual([path, 404]);
    expect((await editor.get('/v1/overlays')).text).not.toContain(id);
    expect((await editor.get('/v1/overlay-shared-links')).text).not.toContain(id);
    expect((await editor.send('POST', `/v1/overlays/${id}/editor-share`, {})).status).toBe(404);
    expect((await owner.send('DELETE', `/v1/overlays/${id}/access/${editor_id}`, undefined)).status).toBe(204);
    expect((await rename()).status).toBe(200);
    client.end();
  });

  test('are copied with the overlay, name three roles and members alone', async () => {
    const { id } = await make();
    expect((await owner.get(`/v1/overlays/${id}/access/candidates`)).body.data).toMatchObject([{ id: editor_id }]);
    await entry(id, { role: 'viewer' });
    const { id: copy } = (await owner.send('POST', `/v1/overlays/${id}/duplicate`, {})).body.data;
    expect((await owner.get(`/v1/overlays/${copy}/access`)).body.data).toMatchObject([
      { overlay_id: copy, user_id: editor_id, role: 'viewer' },
    ]);
    for (const body of [{ role: 'admin' }, {}])
      expect(await entry(id, body)).toMatchObject({
        status: 400,
        body: { error: 'BAD_REQUEST', message: 'Invalid role' },
      });
    expect((await entry(id, { role: 'viewer' }, server.credentials.other.user_id)).status).toBe(404);
  });
});
