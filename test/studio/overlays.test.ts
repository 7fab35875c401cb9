import WebSocket from 'ws';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  server = await startServer({ env: { LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  await limit(100);
});
afterAll(() => server?.dispose());

const limit = (value: number) =>
  owner.send('PATCH', `/v1/admin/accounts/${server.credentials.account_id}/overrides`, {
    features: [],
    limits: [{ name: 'max_overlays', value }],
  });

interface Made {
  id: string;
  key: string;
  access_token: string;
  [member: string]: unknown;
}
async function made(body: object = {}): Promise<Made> {
  const answer = await owner.send('POST', '/v1/overlays', body);
  expect([answer.status, answer.body.message]).toEqual([201, undefined]);
  return answer.body.data;
}
/** Messages on the overlay's channel; `closed` is the close code. */
async function source(token: string, channel: string) {
  const messages: any[] = [];
  const socket = new WebSocket(`${server.ws_url}?token=${token}`);
  const closed = new Promise<number>((end) => socket.once('close', end).once('error', () => end(0)));
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString())));
  await Promise.race([closed, new Promise((open) => socket.once('open', open))]);
  if (socket.readyState === WebSocket.OPEN) {
    socket.send(JSON.stringify({ type: 'subscribe', channel }));
    await eventually(async () => messages.find(({ type }) => type === 'subscribed' || type === 'error'), 'an answer');
  }
  return {
    messages,
    closed,
    close: () => socket.close(),
    has: (code: string) => messages.some((one) => one.code === code),
  };
}
const layersAt = (id: string) => `/v1/overlays/${id}/layers`;
const put = (id: string, revision: number, layers: object[]) => owner.send('PUT', layersAt(id), { revision, layers });

test('an overlay is created with defaults, read, changed and deleted with its token', async () => {
  const { access_token, ...shown } = await made();
  expect(access_token).toMatch(/^lm_overlay_[0-9a-f]{64}$/);
  expect(shown).toEqual({
    ...{ id: expect.any(String), account_id: server.credentials.account_id, folder_id: null },
    ...{ name: 'Main Overlay', key: expect.stringMatching(/^[A-Za-z0-9_-]{12}$/), width: 1920, height: 1080 },
    ...{ background: 'transparent', revision: 0, created_at: expect.any(String), updated_at: expect.any(String) },
  });
  const listed = await owner.get('/v1/overlays');
  expect(listed.text).not.toContain(access_token);
  expect(listed.body.data.map(({ id }: Made) => id)).toContain(shown.id);
  const changed = await owner.send('PATCH', `/v1/overlays/${shown.id}`, { name: ' Scene ', background: '#ff000080' });
  expect(changed.body.data).toMatchObject({ name: 'Scene', background: '#ff000080', width: 1920, revision: 0 });
  const { data } = await owner.gql(`{ overlay(id: "${shown.id}") { name key revision } }`);
  expect(data.overlay).toEqual({ name: 'Scene', key: shown.key, revision: 0 });
  const page = await source(access_token, `overlay:${shown.key}`);
  expect((await owner.send('DELETE', `/v1/overlays/${shown.id}`, undefined)).status).toBe(204);
  expect(await page.closed).toBe(4401);
  expect(page.has('TOKEN_REVOKED')).toBe(true);
  expect((await owner.send('DELETE', `/v1/overlays/${shown.id}`, undefined)).status).toBe(404);
});

test.each([
  { name: ' ' },
  { name: 'x'.repeat(101) },
  { width: 0 },
  { height: 16_385 },
  { width: 1.5 },
  { background: 'red' },
  { folder_id: 'none' },
])('%j is refused', async (body) => {
  expect(await owner.send('POST', '/v1/overlays', body)).toMatchObject({
    status: 400,
    body: { error: 'VALIDATION_ERROR' },
  });
});

describe('layers', () => {
  const TEXT = { type: 'text', config: { template: 'Hi', x: 10 } };

  test('are replaced and patched at a revision that is checked', async () => {
    const { id } = await made();
    expect((await owner.get(layersAt(id))).body.data).toEqual({ overlay_id: id, revision: 0, layers: [] });
    const first = await put(id, 0, [
      { type: 'chat', sort_order: 5 },
      { ...TEXT, name: 'Top', sort_order: 1 },
    ]);
    const [top, chat] = first.body.data.layers;
    expect(first.body.data).toMatchObject({ overlay_id: id, revision: 1, layers: [{ name: 'Top' }, { type: 'chat' }] });
    const stale = await put(id, 0, []);
    expect(stale).toMatchObject({ status: 409, body: { error: 'CONFLICT', details: { revision: 1 } } });
    const patched = await owner.send('PATCH', layersAt(id), {
      revision: 1,
      layers: [{ id: chat.id, visible: false }],
    });
    expect(patched.body.data).toMatchObject({ revision: 2, layers: [top, { ...chat, visible: false }] });
    const kept = await put(id, 2, [{ ...TEXT, name: 'Top', sort_order: 1, id: top.id }]);
    expect(kept.body.data).toMatchObject({ revision: 3, layers: [top] });
    expect((await put(id, 3, [top])).body.data).toEqual(kept.body.data);
    expect((await owner.get(layersAt(id))).body.data).toEqual(kept.body.data);
  });

  test.each([
    ['an unknown type', [{ type: 'hologram' }], 'none of the types'],
    ['code that is no text', [{ type: 'custom', config: { js: 1 } }], 'config.js must be a text'],
    ['a foreign setting', [{ type: 'text', config: { html: '' } }], 'not a setting'],
    ['an id of none', [{ ...TEXT, id: '0190f3a0-0000-7000-8000-000000000000' }], 'has no layer'],
    ['too many', Array.from({ length: 101 }, () => TEXT), 'at most 100 layers'],
    [
      'too large a config',
      [{ type: 'event_list', config: { event_types: Array.from({ length: 700 }, () => 'x'.repeat(100)) } }],
      'larger than',
    ],
  ])('with %s are refused', async (_what, layers, message) => {
    const { id } = await made();
    expect(await put(id, 0, layers)).toMatchObject({
      status: 400,
      body: { error: 'VALIDATION_ERROR', message: expect.stringContaining(message) },
    });
    expect((await owner.get(layersAt(id))).body.data.revision).toBe(0);
  });

  test('with a repeated id are refused', async () => {
    const { id } = await made();
    const [{ id: layer_id }] = (await put(id, 0, [TEXT])).body.data.layers;
    const layers = [
      { ...TEXT, id: layer_id },
      { ...TEXT, id: layer_id },
    ];
    expect((await put(id, 1, layers)).status).toBe(400);
  });

  test('of concurrent editors end as one of them, and the others know the newer revision', async () => {
    const { id } = await made();
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => put(id, 0, [{ ...TEXT, name }])));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    const won = answers.find(({ status }) => status === 200)!.body.data;
    expect((await owner.get(layersAt(id))).body.data).toEqual(won);
  });
});

test('a copy of a long name is cut between characters', async () => {
  const { id } = (await owner.send('POST', '/v1/overlays', { name: `${'x'.repeat(92)}😀😀` })).body.data;
  const copied = await owner.send('POST', `/v1/overlays/${id}/duplicate`, {});
  expect(copied.body.data.name).toBe(`${'x'.repeat(92)} (copy)`);
  const shown = await owner.get(`/v1/overlays/${copied.body.data.id}`);
  expect(shown.body.data.name).toBe(copied.body.data.name);
  for (const one of [id, copied.body.data.id]) await owner.send('DELETE', `/v1/overlays/${one}`, undefined);
});

test('a copy has new layers, a key and a token of its own', async () => {
  const { id, key, access_token } = await made({ name: 'First', width: 800 });
  const { layers } = (await put(id, 0, [{ type: 'text', config: { template: 'Hi' } }])).body.data;
  const copied = await owner.send('POST', `/v1/overlays/${id}/duplicate`, {});
  expect(copied).toMatchObject({ status: 201, body: { data: { name: 'First (copy)', width: 800, revision: 1 } } });
  const { id: copy_id, ...copy } = copied.body.data;
  expect([key, access_token]).not.toContain(copy.key);
  const drawn = (await owner.get(layersAt(copy_id))).body.data;
  expect(drawn).toEqual({ overlay_id: copy_id, revision: 1, layers: [{ ...layers[0], id: expect.any(String) }] });
  expect(drawn.layers[0].id).not.toBe(layers[0].id);
  expect((await put(copy_id, 1, [])).body.data).toMatchObject({ revision: 2, layers: [] });
});

test('a rotated token ends at once, and of concurrent rotations one token remains', async () => {
  const { id, key, access_token } = await made();
  const page = await source(access_token, `overlay:${key}`);
  const rotations = await Promise.all([1, 2, 3].map(() => owner.send('POST', `/v1/overlays/${id}/rotate-token`, {})));
  expect(rotations.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(await page.closed).toBe(4401);
  expect(page.has('TOKEN_REVOKED')).toBe(true);
  const open = await Promise.all(
    rotations.map(async ({ body }) => {
      const one = await source(body.data.access_token, `overlay:${key}`);
      const is_open = one.messages.some(({ type }) => type === 'subscribed');
      one.close();
      return is_open;
    }),
  );
  expect(open.filter(Boolean)).toHaveLength(1);
});

test('a race fills the limit of overlays exactly, and a repeated key doubles nothing', async () => {
  const before = (await owner.get('/v1/overlays')).body.data.length;
  await limit(before + 3);
  const once = { 'idempotency-key': 'one-overlay' };
  const first = await owner.send('POST', '/v1/overlays', {}, once);
  expect(first.status).toBe(201);
  await owner.send('POST', '/v1/overlays', {}, once);
  const answers = await Promise.all(Array.from({ length: 6 }, () => owner.send('POST', '/v1/overlays', {})));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(2);
  expect(answers.find(({ status }) => status === 403)!.body).toMatchObject({
    error: 'PLAN_LIMIT_REACHED',
    message: 'Plan limit reached: max_overlays',
  });
  expect((await owner.get('/v1/overlays')).body.data).toHaveLength(before + 3);
  await limit(100);
});

test('an overlay belongs to its account', async () => {
  const { id } = await made();
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['PATCH', '', { name: 'x' }],
    ['DELETE', '', undefined],
    ['POST', '/duplicate', {}],
    ['POST', '/rotate-token', {}],
    ['GET', '/layers', undefined],
    ['PUT', '/layers', { revision: 0, layers: [] }],
    ['PATCH', '/layers', { revision: 0, layers: [] }],
  ] as const) {
    const answer = await stranger.send(method, `/v1/overlays/${id}${path}`, body);
    expect([method, path, answer.status]).toEqual([method, path, 404]);
  }
});
