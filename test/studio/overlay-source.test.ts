import { randomUUID } from 'node:crypto';
import { Client } from '../support/realtime';
import { uploadedImage } from '../support/uploaded-image';
import { uploadedSound } from '../support/uploaded-sound';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';

let server: TestServer;
let owner: ApiClient;
let vendors: VendorCloud;
let account_id: string;
let overlay: { id: string; key: string; access_token: string };
beforeAll(async () => {
  server = await startServer();
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  vendors = new VendorCloud(server.base_url, server.credentials);
  ({ account_id } = server.credentials);
  overlay = (await owner.send('POST', '/v1/overlays', {})).body.data;
});
afterAll(() => server?.dispose());

const channel = () => `overlay:${overlay.key}`;
const put = async (types: readonly string[]) => {
  const path = `/v1/overlays/${overlay.id}/layers`;
  const { revision } = (await owner.get(path)).body.data;
  const answer = await owner.send('PUT', path, { revision, layers: types.map((type) => ({ type })) });
  expect(answer.status).toBe(200);
  return answer.body.data;
};
async function source(token = overlay.access_token, name = channel()) {
  const client = await Client.open(server.ws_url, token);
  expect((await client.subscribe(name)).type).toBe('subscribed');
  return client;
}
const next = (client: Client, event_type: string, from = 0) =>
  client.next((message) => message.event_type === event_type, event_type, from);
const said = (message_id: string, content: string, user_id = 77) => {
  const broadcaster = { user_id: Number(server.credentials.connections.kick.platform_channel_id), username: 'demo' };
  const sender = { user_id, username: `viewer_${user_id}`, is_anonymous: false, channel_slug: `viewer-${user_id}` };
  const body = { message_id, broadcaster, sender, content, emotes: null };
  return vendors.kick('chat.message.sent', Buffer.from(JSON.stringify(body)));
};

test('a source begins with the visible layers, and is sent changes of layers and of the overlay', async () => {
  const { layers, revision } = await put(['chat', 'text']);
  const client = await source();
  const first = await next(client, 'overlay:update');
  expect(first.data).toMatchObject({
    ...{
      revision,
      width: 1920,
      height: 1080,
      background: 'transparent',
      layers,
      emotes: expect.any(Array),
      assets: {},
    },
    ...{ labels: { last_tip: null, song: null }, alerts: { paused: false, muted: false } },
  });
  const path = `/v1/overlays/${overlay.id}/layers`;
  const hidden = { revision, layers: [{ id: layers[0].id, visible: false }] };
  expect((await owner.send('PATCH', path, hidden)).status).toBe(200);
  const change = await client.next(({ data }) => data?.revision === revision + 1, 'the change');
  expect(change).toMatchObject({ id: expect.any(String), data: { changed: [], removed: [layers[0].id] } });
  await owner.send('PATCH', `/v1/overlays/${overlay.id}`, { width: 1280 });
  await client.next(({ data }) => data?.width === 1280 && !('layers' in data), 'the new width');
  const again = await source();
  expect((await next(again, 'overlay:update')).data).toMatchObject({ width: 1280, layers: [layers[1]] });
  client.end();
  again.end();
});

test('a layer whose flag is off is kept and not drawn', async () => {
  await put(['text', 'chat']);
  const flags = (await owner.get('/v1/admin/feature-flags')).body.data;
  const { id } = flags.find(({ key }: { key: string }) => key === 'widget:text');
  const turn = (enabled: boolean) => owner.send('PATCH', `/v1/admin/feature-flags/${id}`, { enabled });
  expect((await turn(false)).status).toBe(200);
  const client = await source();
  const first = await next(client, 'overlay:update');
  expect(first.data).toMatchObject({ undrawn: ['text'], layers: [{ type: 'chat' }] });
  expect((await turn(true)).status).toBe(200);
  client.end();
});

const linksOf = (data: object | null | undefined) =>
  (data as { assets?: Record<string, string> } | null | undefined)?.assets ?? {};

test('files of layers are linked while they are there, and those of others never', async () => {
  const { access_token, other } = server.credentials;
  const upload_id = await uploadedImage(server.base_url, access_token);
  const theirs = await uploadedImage(server.base_url, other.access_token);
  const sound_id = await uploadedSound(server.base_url, access_token);
  const path = `/v1/overlays/${overlay.id}/layers`;
  const { revision } = await put([]);
  const client = await source();
  const capitals = sound_id.toUpperCase();
  const alerts = { 'kick:follower': { sound_id: capitals, variations: [{ min_amount: 5, upload_id: theirs }] } };
  const coded = await uploadedImage(server.base_url, access_token);
  const addresses = [coded, theirs].map((id) => `url(/v1/uploads/${id}/content)`);
  const layers = [
    { type: 'custom', config: { css: addresses.join(), js: 'x'.repeat(20_000) } },
    { type: 'image', config: { upload_id } },
    { type: 'alerts', config: { alerts } },
  ];
  expect((await owner.send('PUT', path, { revision, layers })).status).toBe(200);
  const linked = await client.next(({ data }) => upload_id in linksOf(data), 'the links');
  expect(Object.keys(linksOf(linked.data)).sort()).toEqual([upload_id, capitals, coded].sort());
  for (const url of Object.values(linksOf(linked.data))) expect((await fetch(server.base_url + url)).status).toBe(200);
  expect((await owner.send('DELETE', `/v1/uploads/${upload_id}`, undefined)).status).toBe(204);
  const again = await source();
  expect(Object.keys(linksOf((await next(again, 'overlay:update')).data)).sort()).toEqual([capitals, coded].sort());
  client.end();
  again.end();
});

test('chat, events and test events of signed webhooks are forwarded once, with drawn members alone', async () => {
  await put(['chat', 'alerts', 'event_list']);
  const client = await source();
  await next(client, 'overlay:update');
  expect((await said('m-1', 'Hello there')).status).toBe(200);
  const message = await next(client, 'chat:message');
  expect(message).toMatchObject({
    ...{ type: 'event', channel: channel() },
    data: { platform: 'kick', platform_message_id: 'm-1', message: 'Hello there', platform_user_id: '77' },
  });
  expect((await vendors.kickFollow(4_711)).status).toBe(200);
  const follow = await next(client, 'kick:follower');
  const members = ['amount', 'count', 'created_at', 'currency', 'id', 'message', 'months', 'platform', 'tier', 'title'];
  expect(Object.keys(follow.data!).sort()).toEqual([...members, 'type', 'user_name']);
  expect(follow.data).toMatchObject({ type: 'kick:follower', platform: 'kick', id: expect.any(String) });
  const tip = {
    event_type: 'streamelements:tip',
    raw: { data: { amount: 5, currency: 'EUR', displayName: 'Ada', email: 'a@b.c' } },
  };
  expect((await owner.send('POST', '/v1/events/test', tip)).status).toBe(200);
  const tested = await next(client, 'streamelements:tip');
  expect(tested.data).toMatchObject({ id: null, amount: 5, currency: 'EUR', user_name: 'Ada' });
  expect(JSON.stringify(tested)).not.toContain('a@b.c');
  expect(client.messages.filter(({ event_type }) => event_type === 'kick:follower')).toHaveLength(1);
  const again = await source();
  const { recent, labels } = (await next(again, 'overlay:update')).data as any;
  expect(recent[0]).toEqual(follow.data);
  expect(labels.last_follower).toBe((follow.data as any).user_name);
  client.end();
  again.end();
});

test('filtered words are masked in messages, events and the first message of a page, while the filter is on', async () => {
  const FILTER = '/v1/bot-modules/word_filter';
  await put(['chat', 'alerts', 'event_list']);
  const filtered = await owner.send('PUT', FILTER, { enabled: true, config: { words: ['darn'], action: 'warn' } });
  expect(filtered.status).toBe(200);
  const client = await source();
  const shown = async (text: string, as: string) => {
    const from = client.messages.length;
    await said(`m-${from}`, text);
    const { data } = await next(client, 'chat:message', from);
    return (data as Record<string, unknown>)['message'] === as ? true : undefined;
  };
  await eventually(() => shown('Darn, d\u0430rn it', '***, *** it'), 'the filter');
  const raw = { data: { amount: 5, currency: 'EUR', displayName: 'Mr darn', message: 'a DARN tip' } };
  await owner.send('POST', '/v1/events/test', { event_type: 'streamelements:tip', raw });
  expect(await next(client, 'streamelements:tip')).toMatchObject({
    data: { user_name: 'Mr ***', message: 'a *** tip' },
  });
  const { db } = server.database!;
  await db.query(
    `insert into platform_event_logs (account_id, id, type, platform, raw, created_at, user_id)
     values ($1, gen_random_uuid(), 'streamelements:tip', 'streamelements', $2, now(), null)`,
    [account_id, JSON.stringify(raw)],
  );
  const page = await source();
  expect((await next(page, 'overlay:update')).data).toMatchObject({
    labels: { last_tip: 'Mr *** 5 EUR' },
    recent: expect.arrayContaining([expect.objectContaining({ user_name: 'Mr ***', message: 'a *** tip' })]),
  });
  page.end();
  expect((await owner.send('DELETE', FILTER, undefined)).status).toBe(204);
  await eventually(() => shown('darn', 'darn'), 'the end of the filter');
  client.end();
});

test('a ban is forwarded without its moderator', async () => {
  await put(['chat']);
  const client = await source();
  await next(client, 'overlay:update');
  const broadcaster = { user_id: Number(server.credentials.connections.kick.platform_channel_id), username: 'demo' };
  const ban = {
    broadcaster,
    moderator: { user_id: 9, username: 'the_moderator' },
    banned_user: { user_id: 77, username: 'viewer_77' },
    metadata: { reason: 'spam', created_at: new Date().toISOString(), expires_at: null },
  };
  expect((await vendors.kick('moderation.banned', Buffer.from(JSON.stringify(ban)))).status).toBe(200);
  const clear = await next(client, 'chat:clear_user');
  expect(clear.data).toEqual({ type: 'chat:clear_user', platform: 'kick', platform_user_id: '77', action: 'ban' });
  client.end();
});

/** A message among those of the account's chat, by a projector. */
async function inChat(event_type: string, data: object) {
  const { db } = server.database!;
  const message = [[`chat:${account_id}`], [event_type], [JSON.stringify({ id: randomUUID(), ...data })]];
  await db.query('select outbox_write($1, $2, $3)', message);
  await db.query(`select pg_notify('lumio_wakeups', 'test outbox')`);
}

/** Whether the outbox has these lines of the account's chat. */
async function areInChat(lines: readonly string[]) {
  const rows = await server.database!.db.query(
    `select 1 from outbox where channel = $1 and data::jsonb ->> 'message' = any($2)`,
    [`chat:${account_id}`, lines],
  );
  return rows.length === lines.length ? true : undefined;
}

test('a source resumes after its last message, in each of its sources, without what was removed meanwhile', async () => {
  await put(['chat', 'event_list']);
  const client = await source();
  await next(client, 'overlay:update');
  await said('r-1', 'before', 81);
  const seen = await next(client, 'chat:message');
  client.end();
  await said('r-2', 'deleted', 81);
  await said('r-3', 'kept', 81);
  await said('r-4', 'cleared', 82);
  await vendors.kickFollow(4_801);
  const tip = { event_type: 'streamelements:tip', raw: { data: { amount: 7, displayName: 'Eve' } } };
  expect((await owner.send('POST', '/v1/events/test', tip)).status).toBe(200);
  await eventually(() => areInChat(['deleted', 'kept', 'cleared']), 'the lines in the outbox');
  await inChat('chat:delete', { type: 'chat:delete', platform_message_id: 'r-2', deleted_by: null });
  await inChat('chat:clear_user', { type: 'chat:clear_user', platform: 'kick', platform_user_id: '82', action: 'ban' });
  const again = await Client.open(server.ws_url, overlay.access_token);
  expect(await again.subscribe(channel(), seen.id)).toMatchObject({ id: seen.id, recovered: true });
  await next(again, 'chat:clear_user');
  await next(again, 'kick:follower');
  await said('r-5', 'after', 81);
  const last = await again.next(({ data }) => data?.message === 'after', 'the newest message');
  const marked = again.messages.filter((message) => 'missed' in message).map(({ event_type }) => event_type);
  expect(marked.sort()).toEqual(['chat:clear_user', 'chat:delete', 'chat:message', 'kick:follower']);
  const shown = again.messages.filter(({ channel: name }) => name === channel());
  expect(shown.slice(0, 2).map(({ type, event_type }) => event_type ?? type)).toEqual(['subscribed', 'overlay:update']);
  const lines = shown.filter(({ event_type }) => event_type === 'chat:message').map(({ data }) => data!.message);
  expect(lines).toEqual(['kept', 'after']);
  expect(JSON.stringify(shown.slice(2))).not.toMatch(/Eve|deleted"|cleared"|before/);
  const repeated = await again.subscribe(channel());
  expect(repeated.id).toBe(last.id);
  again.end();
  const third = await Client.open(server.ws_url, overlay.access_token);
  expect(await third.subscribe(channel(), last.id)).toMatchObject({ recovered: true });
  await next(third, 'overlay:update');
  expect(await third.subscribe(`sounds:${account_id}`)).toMatchObject({ type: 'subscribed' });
  expect(third.messages.filter(({ event_type }) => event_type === 'chat:message')).toEqual([]);
  third.end();
  const [own, , ...others] = seen.id!.split('.');
  for (const since of [own!, `${seen.id}.0`, [own, 99_999, ...others].join('.'), 'x']) {
    const lost = await Client.open(server.ws_url, overlay.access_token);
    expect([since, (await lost.subscribe(channel(), since)).recovered]).toEqual([since, false]);
    lost.end();
  }
});

test('erased messages leave open pages, and pages that resume', async () => {
  await put(['chat', 'event_list']);
  const client = await source();
  await next(client, 'overlay:update');
  await said('e-1', 'to be erased', 83);
  const seen = await next(client, 'chat:message');
  await vendors.kickFollow(4_802);
  const follow = await next(client, 'kick:follower');
  const { id } = seen.data as unknown as { id: string };
  const { id: event_id } = follow.data as unknown as { id: string };
  const { db } = server.database!;
  const erase = `update outbox set data = $2 where left(data, 44) = '{"id":"' || $1 || '"'`;
  await db.query(erase, [id, JSON.stringify({ id, type: 'chat:erased' })]);
  await db.query(erase, [event_id, JSON.stringify({ id: event_id, payload: '[erased]', platform: 'kick' })]);
  const log = `update platform_event_logs set raw = '"[erased]"', user_id = null where id = $1`;
  await db.query(log, [event_id]);
  await db.query(`select pg_notify('lumio_wakeups', 'test messages-erased')`);
  expect((await next(client, 'chat:erased')).data).toEqual({ id });
  expect((await next(client, 'event:erased')).data).toEqual({ id: event_id });
  const follower = await client.next(({ data }) => 'labels' in (data ?? {}) && !('layers' in data!), 'the labels');
  expect((follower.data as any).labels.last_follower).not.toBe((follow.data as any).user_name);
  expect((follower.data as any).labels.last_follower).toEqual(expect.any(String));
  client.end();
  const again = await Client.open(server.ws_url, overlay.access_token);
  expect(await again.subscribe(channel(), follow.id)).toMatchObject({ recovered: true });
  expect((await next(again, 'chat:erased')).data).toEqual({ id });
  expect((await next(again, 'event:erased')).data).toEqual({ id: event_id });
  again.end();
});

test('nothing is forwarded that no visible layer draws, and a new layer draws from then on', async () => {
  await put(['timer']);
  const client = await source();
  expect((await next(client, 'overlay:update')).data).toMatchObject({ recent: [] });
  await said('m-2', 'not drawn');
  const events = await Client.open(server.ws_url, server.credentials.access_token);
  expect((await events.subscribe(`chat:${account_id}`)).type).toBe('subscribed');
  const { revision } = await put(['chat']);
  await client.next(({ data }) => data?.revision === revision, 'the new layer');
  const list = await put(['chat', 'event_list']);
  await client.next(({ data }) => data?.revision === list.revision, 'the list');
  const listed = (data: object | null | undefined) => (data as { recent?: { type: string }[] } | null)?.recent ?? [];
  await client.next(({ data }) => listed(data).some(({ type }) => type === 'kick:follower'), 'its events');
  let count = 0;
  await eventually(async () => {
    count += 1;
    await said(`m-3-${count}`, 'drawn');
    return client.messages.some(({ event_type }) => event_type === 'chat:message') || undefined;
  }, 'a drawn message');
  expect(JSON.stringify(client.messages)).not.toContain('not drawn');
  client.end();
  events.end();
});

test('a widget forwards as an overlay with one layer', async () => {
  const { id, access_token } = (await owner.send('POST', '/v1/widgets', { type: 'event_list' })).body.data;
  const client = await source(access_token, `widget:${id}`);
  expect((await next(client, 'widget:update')).data).toMatchObject({ type: 'event_list', config: { max_items: 10 } });
  expect((await vendors.kickFollow(4_712)).status).toBe(200);
  expect((await next(client, 'kick:follower')).data).toMatchObject({ type: 'kick:follower' });
  client.end();
});

test('a page opens its own channel and its sounds, and neither presence nor REST', async () => {
  const client = await source();
  expect((await client.subscribe(`sounds:${account_id}`)).type).toBe('subscribed');
  for (const other of [`presence:${channel()}`, `chat:${account_id}`, `events:${account_id}`, 'overlay:other-key-12'])
    expect(await client.subscribe(other)).toMatchObject({ type: 'error', code: 'UNAUTHORIZED' });
  expect((await new ApiClient(server.base_url, overlay.access_token).get('/v1/overlays')).status).toBe(403);
  const editor = await Client.open(server.ws_url, server.credentials.access_token);
  expect((await editor.subscribe(`presence:${channel()}`)).type).toBe('subscribed');
  const stranger = await Client.open(server.ws_url, server.credentials.other.access_token);
  expect(await stranger.subscribe(`presence:${channel()}`)).toMatchObject({ code: 'UNAUTHORIZED' });
  for (const one of [client, editor, stranger]) one.end();
});
