import WebSocket from 'ws';
import type { ReactionTools } from '../../app/reactor';
import { widgetCount, type WidgetCountCommand, widgetCountStream } from '../../domain/studio/widget-counts';
import type { StoredEvent } from '../../engines/event-store/port';
import { fold } from '../../kernel/decider';
import { countedWidgets } from '../../reactors/studio/widgets';
import { decider } from '../support/decider';
import { startServer, type TestServer } from '../support/server';
import { uploadedImage } from '../support/uploaded-image';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { WidgetLayer } from '../../web/source/widget';

let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
let editor: ApiClient;
let editor_id: string;
beforeAll(async () => {
  server = await startServer({ env: { LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  const { account_id } = server.credentials;
  const permissions = ['widgets:read', 'widgets:edit', 'widgets:delete', 'widgets:create'];
  const role_id = (await owner.send('POST', '/v1/roles', { name: 'Editors', permissions })).body.data.id;
  const login = { provider: 'twitch', provider_id: 'ed', access_token: 'development:ed' };
  const nobody = new ApiClient(server.base_url, '');
  const { token } = (await nobody.send('POST', '/v1/auth/token/exchange', login)).body;
  editor = new ApiClient(server.base_url, token);
  const { code } = (await owner.send('POST', `/v1/accounts/${account_id}/invites`, { role_id })).body.data;
  expect((await editor.send('POST', `/v1/invites/${code}/accept`, {})).status).toBeLessThan(300);
  await editor.send('PATCH', '/v1/users/me', { active_account_id: account_id });
  editor = new ApiClient(server.base_url, (await nobody.send('POST', '/v1/auth/token/exchange', login)).body.token);
  editor_id = (await editor.get('/v1/users/me')).body.data.id;
});
afterAll(() => server?.dispose());

const make = async (body: object = {}) =>
  owner.send('POST', '/v1/widgets', { type: 'text', config: { template: 'Hi' }, ...body });
async function made(body: object = {}): Promise<{ id: string; access_token: string; [member: string]: any }> {
  const answer = await make(body);
  expect(answer.status).toBe(201);
  return answer.body.data;
}
/** Messages of the widget's page; resolves with the close code of a refused one. */
async function page(token: string, channel: string) {
  const messages: any[] = [];
  const socket = new WebSocket(`${server.ws_url}?token=${token}`);
  const closed = new Promise<number>((end) => socket.once('close', end).once('error', () => end(0)));
  socket.on('message', (data: Buffer) => messages.push(JSON.parse(data.toString())));
  await Promise.race([closed, new Promise((open) => socket.once('open', open))]);
  if (socket.readyState === WebSocket.OPEN) {
    socket.send(JSON.stringify({ type: 'subscribe', channel }));
    await eventually(async () => messages.find(({ type }) => type === 'subscribed' || type === 'error'), 'an answer');
  }
  return { messages, closed, close: () => socket.close() };
}

test('types are listed with their settings', async () => {
  const { data } = (await owner.get('/v1/widgets/types')).body;
  expect(data.map((one: any) => one.slug)).toEqual(expect.arrayContaining(['system-chat-box', 'system-timer']));
  expect(data.find((one: any) => one.slug === 'system-text').config_schema.text_color).toEqual({
    type: 'color',
    label: 'Colour of text',
    default: '#ffffff',
  });
});

test('a widget is made with its defaults, listed, changed on its page, and deleted with its token', async () => {
  const { id, access_token, ...shown } = await made({ name: 'Hello' });
  expect(access_token).toMatch(/^lm_widget_[0-9a-f]{64}$/);
  expect(shown).toMatchObject({
    type: 'text',
    slug: 'system-text',
    name: 'Hello',
    config: { template: 'Hi', align: 'left', font_size: 24 },
    revision: 1,
  });
  const listed = await owner.get('/v1/widgets');
  expect(listed.text).not.toContain(access_token);
  expect((await owner.get(`/v1/widgets/${id}`)).body.data).toMatchObject({ id, name: 'Hello' });
  const of_page = await page(access_token, `widget:${id}`);
  const changed = await owner.send('PATCH', `/v1/widgets/${id}`, { config: { align: 'right' } });
  expect(changed.body.data).toMatchObject({ config: { template: 'Hi', align: 'right' }, revision: 2 });
  const update = await eventually(
    async () => of_page.messages.find(({ event_type, data }) => event_type === 'widget:update' && data.revision === 2),
    'the change',
  );
  expect(update).toMatchObject({
    id: expect.any(String),
    data: { widget_instance_id: id, config: { align: 'right' } },
  });
  const { data } = await owner.gql(`{ widget(id: "${id}") { type slug config revision } }`);
  expect(data.widget).toMatchObject({ type: 'text', slug: 'system-text', revision: 2 });
  expect((await owner.send('DELETE', `/v1/widgets/${id}`, undefined)).status).toBe(204);
  expect(await of_page.closed).toBe(4401);
  expect((await owner.get(`/v1/widgets/${id}`)).status).toBe(404);
});

test('a change to another picture has its link, and links that are sent alone reach the drawing', async () => {
  const { id, access_token } = await made({ type: 'image', config: {} });
  const of_page = await page(access_token, `widget:${id}`);
  const upload_id = await uploadedImage(server.base_url, server.credentials.access_token);
  await owner.send('PATCH', `/v1/widgets/${id}`, { config: { upload_id } });
  const updates = () => of_page.messages.filter(({ event_type }) => event_type === 'widget:update');
  const changed = await eventually(async () => updates().find(({ data }) => data.revision === 2), 'the change');
  const url = expect.stringMatching(`^/v1/uploads/${upload_id}/content`);
  const assets = { [upload_id]: url };
  await eventually(async () => updates().find(({ data }) => data.assets?.[upload_id]), 'the links');
  expect(updates().at(-1)!.data).toEqual({ assets });
  const widget = new WidgetLayer(id);
  expect(widget.update(updates()[0].data)).toMatchObject({ revision: 1, layers: [{ id, type: 'image' }], assets: {} });
  const layer = { id, type: 'image', config: { upload_id } };
  expect(widget.update(changed.data)).toMatchObject({ revision: 2, changed: [layer] });
  expect(widget.update({ assets })).toEqual({ assets });
  of_page.close();
});

test('a change of the largest settings reaches an open page', async () => {
  const { id, access_token } = await made({ type: 'alerts', config: {} });
  const of_page = await page(access_token, `widget:${id}`);
  const rules = Array.from({ length: 80 }, (_, n) => [`kick:event-${n}`, { template: 'x'.repeat(785) }]);
  const config = { alerts: Object.fromEntries(rules) };
  expect((await owner.send('PATCH', `/v1/widgets/${id}`, { config })).status).toBe(200);
  const changed = await eventually(async () => of_page.messages.find(({ data }) => data?.revision === 2), 'the change');
  expect(changed.data.config).toMatchObject(config);
  of_page.close();
});

test.each([
  [{ type: 'system-nothing' }, 'type is none of the types of widgets'],
  [{ config: { colour: 'red' } }, 'config.colour is not a setting of this type'],
  [{ config: { text_color: 'red' } }, 'config.text_color must be a color'],
  [{ config: { font_size: 7 } }, 'config.font_size must be a number from 8 to 200'],
  [{ config: { align: 'up' } }, 'config.align must be a select of left, center, right'],
  [{ type: 'timer', config: { ends_at: 'soon' } }, 'config.ends_at must be an RFC 3339 time or null'],
  [
    { type: 'alerts', config: { alerts: { 'kick:follower': { volume: 2 } } } },
    'config.alerts must be settings of alerts',
  ],
])('%j is refused: %s', async (body, message) => {
  expect(await make(body)).toMatchObject({
    status: 400,
    body: { error: 'VALIDATION_ERROR', message: expect.stringContaining(message) },
  });
});

test('a copy has a token of its own; a rotated token ends at once', async () => {
  const { id, access_token } = await made({ name: 'First' });
  const copied = await owner.send('POST', `/v1/widgets/${id}/duplicate`, {});
  expect(copied).toMatchObject({ status: 201, body: { data: { name: 'First (copy)', config: { template: 'Hi' } } } });
  expect(copied.body.data.access_token).not.toBe(access_token);
  const of_page = await page(access_token, `widget:${id}`);
  const rotated = await owner.send('POST', `/v1/widgets/${id}/rotate-token`, {});
  expect(await of_page.closed).toBe(4401);
  const again = await page(rotated.body.data.access_token, `widget:${id}`);
  expect(again.messages.some(({ type }) => type === 'subscribed')).toBe(true);
  again.close();
});

test('of concurrent rotations one token remains, and a repeated key doubles nothing', async () => {
  const { id } = await made();
  const rotations = await Promise.all([1, 2, 3].map(() => owner.send('POST', `/v1/widgets/${id}/rotate-token`, {})));
  expect(rotations.map(({ status }) => status)).toEqual([200, 200, 200]);
  const pages = await Promise.all(rotations.map(({ body }) => page(body.data.access_token, `widget:${id}`)));
  expect(pages.filter(({ messages }) => messages.some(({ type }) => type === 'subscribed'))).toHaveLength(1);
  for (const one of pages) one.close();

  const before = (await owner.gql('{ widgets { total } }')).data.widgets.total;
  const headers = { 'idempotency-key': 'one-widget' };
  const once = () => owner.send('POST', '/v1/widgets', { type: 'text' }, headers);
  const [first, second] = [await once(), await once()];
  expect(first.status).toBe(201);
  expect(second.body.data?.access_token ?? first.body.data.access_token).toBe(first.body.data.access_token);
  expect((await owner.gql('{ widgets { total } }')).data.widgets.total).toBe(before + 1);
});

test('an account has at most 500 widgets', () => {
  const given = decider(widgetCount);
  const add = (widget_id: string) => ({ type: 'widget_count:add', widget_id, account_id: 'a' }) as const;
  const full = Array.from({ length: 500 }, (_, n) => ({
    ...{ type: 'widget_count:added' as const, widget_id: `w${n}`, account_id: 'a' },
  }));
  const removed = { type: 'widget_count:removed', widget_id: 'w0', account_id: 'a' } as const;
  given(full).when(add('next')).thenFails('TOO_MANY_WIDGETS');
  given(full).when(add('w0')).thenNothing();
  given([...full, removed])
    .when(add('next'))
    .then({ ...removed, type: 'widget_count:added', widget_id: 'next' });
});

test('widgets that were never counted count as well, until they are deleted', async () => {
  const full = Array.from({ length: 500 }, (_, n) => ({
    ...{ type: 'widget_count:added' as const, widget_id: `w${n}`, account_id: 'a' },
  }));
  let state = fold(widgetCount, full);
  const act = async (_decider: unknown, stream: string, command: WidgetCountCommand) => {
    expect(stream).toBe(widgetCountStream('a'));
    state = widgetCount.decide(state, command).reduce(widgetCount.evolve, state);
  };
  const after = async (type: string, data: object) => {
    const event = { type, version: 2, data: { widget_id: 'old', account_id: 'a', ...data } };
    await countedWidgets.react(event as unknown as StoredEvent, { act } as unknown as ReactionTools);
    return Object.keys(state).length;
  };
  expect(await after('widget:created', { token_id: 't', token_hash: 'h' })).toBe(500);
  const created = { token_id: null, token_hash: null };
  expect([await after('widget:created', created), await after('widget:created', created)]).toEqual([501, 501]);
  expect([await after('widget:deleted', {}), await after('widget:deleted', {})]).toEqual([500, 500]);
});

describe('access entries', () => {
  const entry = (id: string, body: object, user_id = editor_id) =>
    owner.send('PUT', `/v1/widgets/${id}/access/${user_id}`, body);

  test('name who may be bound, and narrow what a member may do', async () => {
    const { id } = await made();
    const candidates = async () => (await owner.get(`/v1/widgets/${id}/access/candidates`)).body.data;
    expect((await candidates()).map((one: any) => one.id)).toEqual([editor_id]);
    const rename = () => editor.send('PATCH', `/v1/widgets/${id}`, { name: 'Mine' });
    expect((await rename()).status).toBe(200);
    const granted = await entry(id, { role: 'viewer' });
    expect(granted).toMatchObject({
      status: 200,
      body: { data: { widget_id: id, user_id: editor_id, role: 'viewer', granted_by: server.credentials.user_id } },
    });
    expect(await candidates()).toEqual([]);
    expect((await owner.get(`/v1/widgets/${id}/access`)).body.data).toMatchObject([{ user_id: editor_id }]);
    expect((await rename()).status).toBe(403);
    expect((await editor.get(`/v1/widgets/${id}`)).status).toBe(200);
    expect((await entry(id, { role: 'none' })).body.data.id).toBe(granted.body.data.id);
    expect((await editor.get(`/v1/widgets/${id}`)).status).toBe(404);
    expect((await editor.get('/v1/widgets')).text).not.toContain(id);
    expect((await editor.send('POST', `/v1/widgets/${id}/duplicate`, {})).status).toBe(404);
    expect((await owner.send('DELETE', `/v1/widgets/${id}/access/${editor_id}`, undefined)).status).toBe(204);
    expect((await rename()).status).toBe(200);
    expect((await owner.send('DELETE', `/v1/widgets/${id}/access/${editor_id}`, undefined)).status).toBe(404);
  });

  test('have three roles, and bind members alone, never the owner', async () => {
    const { id } = await made();
    expect(await entry(id, { role: 'admin' })).toMatchObject({
      status: 400,
      body: { error: 'BAD_REQUEST', message: 'Invalid role' },
    });
    expect((await entry(id, { role: 'viewer' }, server.credentials.other.user_id)).status).toBe(404);
    expect((await entry(id, { role: 'none' }, server.credentials.user_id)).status).toBe(200);
    expect((await owner.get(`/v1/widgets/${id}`)).status).toBe(200);
  });
});

test('a widget belongs to its account', async () => {
  const { id } = await made();
  for (const [method, path, body] of [
    ['GET', '', undefined],
    ['PATCH', '', { name: 'x' }],
    ['DELETE', '', undefined],
    ['POST', '/duplicate', {}],
    ['POST', '/rotate-token', {}],
    ['GET', '/access', undefined],
    ['GET', '/access/candidates', undefined],
    ['PUT', `/access/${server.credentials.other.user_id}`, { role: 'viewer' }],
    ['DELETE', `/access/${editor_id}`, undefined],
  ] as const) {
    const answer = await stranger.send(method, `/v1/widgets/${id}${path}`, body);
    expect([method, path, answer.status]).toEqual([method, path, 404]);
  }
});
