import { Listener } from '../support/listener';
import { silence } from '../support/uploaded-sound';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
let account_id: string;
beforeAll(async () => {
  server = await startServer();
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  ({ account_id } = server.credentials);
});
afterAll(() => server?.dispose());

async function upload(bytes: Buffer, { filename = 'Air Horn.wav', key = '', fields = {} } = {}) {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
  form.append('file', new Blob([new Uint8Array(bytes)], { type: 'text/html' }), filename);
  const answer = await fetch(`${server.base_url}/v1/sounds`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${server.credentials.access_token}`,
      ...(key === '' ? {} : { 'idempotency-key': key }),
    },
    body: form,
  });
  return { status: answer.status, body: (await answer.json()) as any };
}
const limits = (named: Record<string, number>) =>
  owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
    features: [],
    limits: Object.entries(named).map(([name, value]) => ({ name, value })),
  });
const audio = (id: string, query = '', headers: Record<string, string> = {}) =>
  fetch(`${server.base_url}/v1/sounds/${id}/stream${query}`, { headers });
const bearer = () => ({ authorization: `Bearer ${server.credentials.access_token}` });

test('an upload is kept with its length, listed, found, changed and sent back', async () => {
  const listener = await Listener.to(server.ws_url, server.credentials.access_token, `sounds:${account_id}`);
  const bytes = silence(2);
  const made = await upload(bytes);
  expect(made).toMatchObject({
    status: 201,
    body: {
      data: {
        account_id,
        name: 'Air Horn',
        filename: 'Air Horn.wav',
        content_type: 'audio/wav',
        size_bytes: bytes.length,
        duration_ms: 2_000,
        waveform: null,
        source_extension_name: null,
      },
    },
  });
  const { id } = made.body.data;
  await listener.next((one: any) => one.event_type === 'sound:list:updated' && one.data.action === 'created');
  expect((await owner.get('/v1/sounds?search=HORN')).body.data).toMatchObject({
    sounds: [{ id }],
    total_count: 1,
    user_sound_count: 1,
    max_sounds: 50,
    used_storage_bytes: bytes.length,
  });
  expect((await owner.get('/v1/sounds?search=%25')).body.data).toMatchObject({ sounds: [], total_count: 0 });
  const changed = await owner.send('PATCH', `/v1/sounds/${id}`, { name: 'Horn', waveform: [0, 0.5, 1] });
  expect(changed.body.data).toMatchObject({ name: 'Horn', duration_ms: 2_000, waveform: [0, 0.5, 1] });
  const { data } = await owner.gql(`{ sound(id: "${id}") { name waveform durationMs } }`);
  expect(data.sound).toEqual({ name: 'Horn', waveform: [0, 0.5, 1], durationMs: 2_000 });

  const whole = await audio(id, '', bearer());
  expect(whole.headers.get('cache-control')).toBe('private, max-age=86400, immutable');
  expect(Buffer.from(await whole.arrayBuffer())).toEqual(bytes);
  const part = await audio(id, '', { ...bearer(), range: 'bytes=40-47' });
  expect(part.status).toBe(206);
  expect(Buffer.from(await part.arrayBuffer())).toEqual(bytes.subarray(40, 48));
  listener.close();
});

test('a sound plays by a signed link, which nobody can alter or use for another sound', async () => {
  const { id } = (await upload(silence(1), { fields: { name: 'Played' } })).body.data;
  const other = (await upload(silence(1))).body.data.id;
  const listener = await Listener.to(server.ws_url, server.credentials.access_token, `sounds:${account_id}`);
  const play = (body: object) => owner.send('POST', `/v1/sounds/${id}/play`, body);
  const overlay = (await owner.send('POST', '/v1/overlays', {})).body.data;
  const theirs = (await stranger.send('POST', '/v1/widgets', { type: 'text' })).body.data;
  for (const target of [
    { type: 'overlay', id: 'abc' },
    { type: 'widget', id: overlay.id },
    { type: 'widget', id: theirs.id },
  ])
    for (const act of ['play', 'stop'])
      expect((await owner.send('POST', `/v1/sounds/${id}/${act}`, { target })).status).toBe(404);
  expect(await play({ volume: 0.5, target: { type: 'overlay', id: overlay.key } })).toMatchObject({
    status: 200,
    body: { success: true },
  });
  const { data }: any = await listener.next((one: any) => one.event_type === 'sound:play');
  const target = { type: 'overlay', id: overlay.id };
  expect(data).toEqual({ sound_id: id, url: expect.any(String), volume: 0.5, target });
  const played = await fetch(server.base_url + data.url);
  expect([played.status, played.headers.get('content-type')]).toEqual([200, 'audio/wav']);
  const query = data.url.slice(data.url.indexOf('?')) as string;
  expect(played.headers.get('content-security-policy')).toBe("sandbox; default-src 'none'");
  // A changed link counts as none.
  expect((await audio(other, query)).status).toBe(401);
  expect((await audio(id, query.replace(/expires=(\d)/, 'expires=9'))).status).toBe(401);
  expect((await audio(id, `${query}x`)).status).toBe(401);
  expect((await audio(id, `${query}x`, bearer())).status).toBe(200);
  expect((await audio(id)).status).toBe(401);
  // An empty signature opens nothing either.
  const reads = { label: 'Reads events', permissions: ['events:read'] };
  const { key } = (await owner.send('POST', '/v1/service-keys', reads)).body.data;
  for (const signature of ['', 'x'])
    expect((await audio(id, `?signature=${signature}`, { authorization: `Bearer ${key}` })).status).toBe(403);
  for (const body of [{ volume: 1.1 }, { volume: -1 }, { target: { type: 'chat', id: 'x' } }])
    expect((await play(body)).status).toBe(400);
  expect((await owner.send('POST', `/v1/sounds/${id}/stop`, {})).body).toEqual({ success: true });
  await listener.next((one: any) => one.event_type === 'sound:stop' && one.data.sound_id === id);
  listener.close();
});

test('other files, and files, counts and bytes over the limits of the account are refused', async () => {
  const refused = (status: number, error: string) => ({ status, body: { error } });
  expect(await upload(Buffer.from('<html>'))).toMatchObject(refused(400, 'VALIDATION_ERROR'));
  const { user_sound_count: count, used_storage_bytes: used } = (await owner.get('/v1/sounds')).body.data;
  expect((await limits({ max_sound_file_size: 9_000 })).status).toBe(200);
  expect(await upload(silence(2))).toMatchObject(refused(400, 'BAD_REQUEST'));
  expect((await upload(silence(1))).status).toBe(201);
  await limits({ max_sounds: count + 2 });
  const answers = await Promise.all([1, 2, 3].map(() => upload(silence(1))));
  expect(answers.map(({ status }) => status).sort()).toEqual([201, 403, 403]);
  expect(answers.find(({ status }) => status === 403)!.body).toMatchObject({
    error: 'PLAN_LIMIT_REACHED',
    message: 'Plan limit reached: max_sounds',
  });
  await limits({ max_sounds: 50, max_sound_storage_bytes: used + 2 * 8_044 + 100 });
  expect((await upload(silence(1))).body.message).toBe('Plan limit reached: max_sound_storage_bytes');
  const mib = 1024 * 1024;
  await limits({ max_sounds: 50, max_sound_file_size: 5 * mib, max_sound_storage_bytes: 100 * mib });
});

test('a repeated upload is one sound', async () => {
  const [first, again] = [await upload(silence(1), { key: 'once' }), await upload(silence(1), { key: 'once' })];
  expect([first.status, again.status]).toEqual([201, 201]);
  expect(again.body).toEqual(first.body);
});

test('a sound belongs to its account; a deleted one is gone with its audio', async () => {
  const { id } = (await upload(silence(1))).body.data;
  const path = `/v1/sounds/${id}`;
  expect((await stranger.get(path)).status).toBe(404);
  expect((await stranger.send('PATCH', path, { name: 'x' })).status).toBe(404);
  expect((await stranger.send('DELETE', path, undefined)).status).toBe(404);
  expect((await stranger.send('POST', `${path}/play`, {})).status).toBe(404);
  expect((await stranger.get(`${path}/stream`)).status).toBe(404);
  const [{ blob_key }] = (await server.database!.db.query('select blob_key from sounds where id = $1', [id])) as any;
  expect((await owner.send('DELETE', path, undefined)).status).toBe(204);
  expect((await owner.get(path)).status).toBe(404);
  expect((await owner.send('DELETE', path, undefined)).status).toBe(404);
  await eventually(async () => {
    const rows = await server.database!.db.query(
      `select 1 from finished_jobs where key like 'delete-sound-audio/%' and key like $1`,
      [`%${id}`],
    );
    return rows.length > 0 || undefined;
  }, 'the audio to be deleted');
  expect(blob_key).toMatch(/^uploads\//);
});
