import { alertControls, type AlertPage } from '../../domain/studio/alert-controls';
import { decider } from '../support/decider';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';

describe('controls of alerts', () => {
  const page = (page_id: string): AlertPage => ({ kind: 'overlay', page_id, channel: `overlay:${page_id}` });
  const control = (action: 'pause' | 'resume' | 'mute', pages: readonly AlertPage[]) =>
    ({ type: 'alerts:control', account_id: 'a', action, pages, now: 'now' }) as const;
  const controlled = (action: 'pause' | 'mute', page_id: string, state: { paused: boolean; muted: boolean }) => ({
    ...({ type: 'alerts:controlled', account_id: 'a', action, changed_at: 'now' } as const),
    ...{ pages: [{ kind: 'overlay' as const, page_id, ...state }], channels: [`overlay:${page_id}`] },
  });

  test('store the changed pages alone', () => {
    const given = decider(alertControls);
    const paused = controlled('pause', 'p', { paused: true, muted: false });
    given([paused])
      .when(control('pause', [page('p'), page('q')]))
      .then(controlled('pause', 'q', { paused: true, muted: false }));
    given([paused])
      .when(control('mute', [page('p')]))
      .then(controlled('mute', 'p', { paused: true, muted: true }));
    given([])
      .when(control('resume', [page('p')]))
      .thenNothing();
  });
});

let server: TestServer;
let owner: ApiClient;
let editor: ApiClient;
let editor_id: string;
let overlays: { id: string; key: string; access_token: string }[];
let widget: { id: string; access_token: string };
let event_id: string;
beforeAll(async () => {
  server = await startServer({ env: { LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  const { account_id } = server.credentials;
  const limits = [{ name: 'max_overlays', value: 50 }];
  await owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, { features: [], limits });
  const made = await Promise.all([1, 2].map(() => owner.send('POST', '/v1/overlays', {})));
  overlays = made.map(({ body }) => body.data);
  widget = (await owner.send('POST', '/v1/widgets', { type: 'alerts' })).body.data;
  const permissions = ['overlays:edit'];
  const role_id = (await owner.send('POST', '/v1/roles', { name: 'Editors', permissions })).body.data.id;
  const login = { provider: 'twitch', provider_id: 'ed', access_token: 'development:ed' };
  const nobody = new ApiClient(server.base_url, '');
  editor = new ApiClient(server.base_url, (await nobody.send('POST', '/v1/auth/token/exchange', login)).body.token);
  const { code } = (await owner.send('POST', `/v1/accounts/${account_id}/invites`, { role_id })).body.data;
  await editor.send('POST', `/v1/invites/${code}/accept`, {});
  await editor.send('PATCH', '/v1/users/me', { active_account_id: account_id });
  editor = new ApiClient(server.base_url, (await nobody.send('POST', '/v1/auth/token/exchange', login)).body.token);
  editor_id = (await editor.get('/v1/users/me')).body.data.id;
  await new VendorCloud(server.base_url, server.credentials).kickFollow(4_711);
  event_id = await eventually(async () => (await owner.get('/v1/events')).body.data[0]?.id, 'the event');
});
afterAll(() => server?.dispose());

const act = (action: string, body: object = {}, by = owner) => by.send('POST', `/v1/overlays/alerts/${action}`, body);
const pages = () => [
  ...overlays.map(({ key, access_token }) => [access_token, `overlay:${key}`] as const),
  [widget.access_token, `widget:${widget.id}`] as const,
];
const opened = async ([token, channel]: readonly [string, string]) => {
  const client = await Client.open(server.ws_url, token);
  expect((await client.subscribe(channel)).type).toBe('subscribed');
  const first = await client.next(({ event_type }) => event_type?.endsWith(':update') === true, 'the first state');
  return { client, alerts: (first.data as any).alerts as object };
};
const sent = (client: Client, action: string) =>
  client.next(({ event_type, data }) => event_type === 'overlay:alerts' && data?.action === action, action);

test('reach all sources, are stored, and outlive a reload', async () => {
  const open = await Promise.all(pages().map(opened));
  expect(await act('pause')).toMatchObject({ status: 200, body: { success: true } });
  expect((await owner.gql('mutation { muteOverlayAlerts { success } }')).data.muteOverlayAlerts.success).toBe(true);
  for (const { client } of open) {
    expect((await sent(client, 'pause')).data).toEqual({ action: 'pause', paused: true, muted: false, event: null });
    expect((await sent(client, 'mute')).data).toMatchObject({ paused: true, muted: true });
  }
  for (const { client, alerts } of await Promise.all(pages().map(opened))) {
    expect(alerts).toEqual({ paused: true, muted: true });
    client.end();
  }
  for (const action of ['resume', 'unmute']) expect((await act(action)).status).toBe(200);
  for (const { client } of open)
    expect((await sent(client, 'unmute')).data).toMatchObject({ paused: false, muted: false });
  for (const { client } of open) client.end();
});

test('skip and replay are sent and not stored; an event of nobody is not found', async () => {
  const { client } = await opened(pages()[0]!);
  expect((await act('replay', { event_id, overlay_id: overlays[0]!.id })).status).toBe(200);
  const replayed = await sent(client, 'replay');
  expect(replayed.data).toMatchObject({ event: { id: event_id, type: 'kick:follower' } });
  expect(Object.keys((replayed.data as any).event)).not.toContain('raw');
  expect((await act('skip')).status).toBe(200);
  expect(await sent(client, 'skip')).not.toHaveProperty('id');
  const stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  const unknown = { event_id: '00000000-0000-4000-8000-000000000000' };
  for (const [body, by] of [[unknown, owner] as const, [{ event_id }, stranger] as const])
    expect(await act('replay', body, by)).toMatchObject({ status: 404, body: { message: 'Event not found' } });
  expect((await act('replay')).status).toBe(400);
  expect((await act('pause', { overlay_id: overlays[0]!.id }, stranger)).status).toBe(404);
  client.end();
});

test('a replayed event has its filtered words masked', async () => {
  const FILTER = '/v1/bot-modules/word_filter';
  const filtered = await owner.send('PUT', FILTER, { enabled: true, config: { words: ['darn'], action: 'warn' } });
  expect(filtered.status).toBe(200);
  const raw = { data: { amount: 5, currency: 'EUR', displayName: 'Mr darn', message: 'a DARN tip' } };
  const [tip] = await server.database!.db.query<{ id: string }>(
    `insert into platform_event_logs (account_id, id, type, platform, raw, created_at, user_id)
     values ($1, gen_random_uuid(), 'streamelements:tip', 'streamelements', $2, now(), null) returning id`,
    [server.credentials.account_id, JSON.stringify(raw)],
  );
  const { client } = await opened(pages()[0]!);
  const masked = async () => {
    const from = client.messages.length;
    expect((await act('replay', { event_id: tip!.id, overlay_id: overlays[0]!.id })).status).toBe(200);
    const { data } = await client.next(({ event_type }) => event_type === 'overlay:alerts', 'the replay', from);
    const { user_name, message } = (data as any).event;
    return user_name === 'Mr ***' && message === 'a *** tip' ? true : undefined;
  };
  await eventually(masked, 'the filter');
  expect((await owner.send('DELETE', FILTER, undefined)).status).toBe(204);
  client.end();
});

test('act on what the caller may edit alone', async () => {
  const [bound, free] = overlays.map(({ id }) => id);
  const entry = (role: string) => owner.send('PUT', `/v1/overlays/${bound}/access/${editor_id}`, { role });
  for (const [role, status] of [['viewer', 403] as const, ['none', 404] as const]) {
    await entry(role);
    for (const action of ['pause', 'skip', 'replay']) {
      const body = { overlay_id: bound, ...(action === 'replay' && { event_id }) };
      expect([role, action, (await act(action, body, editor)).status]).toEqual([role, action, status]);
    }
  }
  expect((await act('mute', {}, editor)).status).toBe(200);
  const states = await Promise.all(pages().map(opened));
  // Their role does not edit widgets.
  expect(states.map(({ alerts }) => alerts)).toEqual([
    { paused: false, muted: false },
    { paused: false, muted: true },
    { paused: false, muted: false },
  ]);
  for (const { client } of states) client.end();
  expect((await act('unmute', { overlay_id: free }, editor)).status).toBe(200);
});

test('the audit log names the page of each token, and the account of controls, without keys of channels', async () => {
  const entries = async (query: string) => {
    const answer = await owner.get(`/v1/account/audit-log?limit=100&${query}`);
    expect(answer.status).toBe(200);
    return answer.body.data as { action: string; target: object; actor: { id: string }; after: any }[];
  };
  const { id: overlay_id, key } = overlays[0]!;
  const done = async (method: string, path: string, body?: object) => {
    const answer = await owner.send(method, path, body);
    expect(answer.status).toBeLessThan(300);
    return answer.body?.data;
  };
  await done('POST', `/v1/overlays/${overlay_id}/rotate-token`, {});
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  const { id: link_id } = await done('POST', '/v1/overlay-shared-links', { overlay_id, expires_at });
  await done('DELETE', `/v1/overlay-shared-links/${link_id}`);
  await done('POST', `/v1/widgets/${widget.id}/rotate-token`, {});
  await done('DELETE', `/v1/widgets/${widget.id}`);
  await done('DELETE', `/v1/overlays/${overlay_id}`);
  const { user_id, account_id } = server.credentials;
  for (const [kind, id, actions] of [
    ['overlay', overlay_id, ['created', 'deleted', 'shared', 'token_rotated', 'unshared']] as const,
    ['widget', widget.id, ['created', 'deleted', 'token_rotated']] as const,
  ]) {
    const found = await entries(`target_id=${id}`);
    const names = new Set(found.map(({ action }) => action));
    expect([...names].sort()).toEqual(expect.arrayContaining(actions.map((action) => `${kind}:${action}`)));
    for (const { target, actor } of found) expect([target, actor.id]).toEqual([{ kind, id }, user_id]);
    expect(JSON.stringify(found)).not.toMatch(/token_hash":"[0-9a-f]{64}|lm_(overlay|widget|share)_/);
  }
  const controlled = await entries('action=alerts%3Acontrolled');
  expect(controlled.length).toBeGreaterThan(0);
  for (const { target, after } of controlled) {
    expect(target).toEqual({ kind: 'account', id: account_id });
    expect([Object.keys(after).includes('pages'), Object.keys(after).includes('channels')]).toEqual([true, false]);
  }
  expect(JSON.stringify(await entries(''))).not.toContain(key);
});
