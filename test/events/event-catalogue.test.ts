import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { ChatRecord } from '../../domain/chat/chat-messages';
import { EVENT_TYPES, exampleText, shapeOf } from '../../domain/events/event-catalogue';
import { AT } from '../../domain/events/types/type';
import { eventsPage } from '../support/events-page';
import { Listener } from '../support/listener';
import { type MadeAccount, sharedServer, type SharedServer } from '../support/shared-server';

/** Spec doc3 §6.2, word by word. */
const SUBSCRIBABLE: Readonly<Record<string, string>> = {
  twitch:
    'follower subscribe gift_sub resub cheer raid reward hype_train hype_train_end poll poll_end prediction ' +
    'prediction_lock prediction_end goal goal_end ad_break ban unban stream_online stream_offline stream_update chat',
  youtube: 'subscribe member superchat supersticker gift_membership gift_membership_received poll chat',
  kick: 'follower subscribe gift stream_online stream_offline chat',
  trovo: 'subscribe spell chat',
  spotify:
    'track play pause skip volume queue_add device playlist_add playlist_remove playlist_create playlist_edit ' +
    'playlist_delete',
  streamelements: 'tip',
  chat: 'message',
};
const WRITTEN: Readonly<Record<string, string>> = {
  twitch:
    'gift gift_upgrade prime_upgrade pay_it_forward bits_badge poll_delete raid_out raid_done unraid first_message ' +
    'watch_streak',
  trovo: 'follower raid subscriber',
  discord: 'member_join member_leave boost',
  shopify: 'order order_paid product',
};
const TRANSIENT: Readonly<Record<string, string>> = {
  chat: 'delete clear_user moderation_log user_treatment_update',
  channel: 'online offline',
  copyright: 'blocked warning clear',
  obs: 'action connection_lost low_bitrate high_dropped_frames recovery',
  history: 'session_started session_updated',
  sound: 'play',
  overlay: 'update',
  widget: 'update',
  storage: 'update',
  extension: 'updated',
};
const types = (by_prefix: Readonly<Record<string, string>>) =>
  Object.entries(by_prefix).flatMap(([prefix, actions]) => actions.split(' ').map((action) => `${prefix}:${action}`));
const named = (fits: (one: (typeof EVENT_TYPES)[number]) => boolean) =>
  EVENT_TYPES.filter(fits).map(({ type }) => type);

test('every type of the specification is in it once, and no other', () => {
  expect(named((one) => one.subscribable).sort()).toEqual(types(SUBSCRIBABLE).sort());
  expect(named((one) => !one.subscribable).sort()).toEqual([...types(WRITTEN), ...types(TRANSIENT)].sort());
  expect(new Set(EVENT_TYPES.map(({ type }) => type)).size).toBe(EVENT_TYPES.length);
  // What the specification says goes through the chat, or is never stored.
  expect(named((one) => one.delivered !== 'event_log').sort()).toEqual(
    [
      ...types(TRANSIENT),
      ...['twitch', 'youtube', 'kick', 'trovo'].map((platform) => `${platform}:chat`),
      ...['twitch:ban', 'twitch:unban', 'twitch:gift_sub', 'chat:message'],
    ].sort(),
  );
});

test.each(EVENT_TYPES)('$type: the example is of its shape, and tells of the moment it is asked for', (one) => {
  const schema = z.fromJSONSchema(shapeOf(one) as Parameters<typeof z.fromJSONSchema>[0]);
  const now = Date.parse('2026-11-22T06:00:00.000Z');
  const text = exampleText(one.type, now)!;
  expect(schema.safeParse(JSON.parse(text))).toMatchObject({ success: true });
  expect(schema.safeParse('text').success).toBe(false);
  expect(text).not.toContain(AT);
  expect(text).not.toContain(`:${Date.parse(AT) / 1000},`);
  expect(exampleText(one.type, Date.parse(AT))).toBe(JSON.stringify(one.example));
});

test('a path that may be absent or null is one of the example', () => {
  const paths = (value: unknown, path: string): string[] => {
    if (Array.isArray(value)) return [path, ...value.slice(0, 1).flatMap((one) => paths(one, `${path}[]`))];
    if (value === null || typeof value !== 'object') return [path];
    const below = (name: string) => (path === '' ? name : `${path}.${name}`);
    return [path, ...Object.entries(value).flatMap(([name, one]) => paths(one, below(name)))];
  };
  // Kinds of one vendor's message share what may be absent: there a path of none of them is a slip.
  const known = new Set(EVENT_TYPES.flatMap(({ example }) => paths(example, '')));
  const stated = EVENT_TYPES.flatMap(({ optional, nullable }) => [...optional, ...nullable]);
  expect([...new Set(stated)].filter((path) => !known.has(path))).toEqual([]);
});

test('messages of chats are chat records', () => {
  for (const { type, example } of EVENT_TYPES.filter((one) => /^(twitch|youtube|kick|trovo):chat$/.test(one.type)))
    expect([type, ChatRecord.safeParse(example).error]).toEqual([type, undefined]);
});

test('the page in the documents is the catalogue (npm run events)', () => {
  expect(readFileSync(join(__dirname, '../../docs/events.md'), 'utf8')).toBe(eventsPage());
});

describe('over the protocols', () => {
  let server: SharedServer;
  let me: MadeAccount & Awaited<ReturnType<SharedServer['account']>>;
  beforeAll(async () => {
    server = await sharedServer();
    me = await server.account();
  });

  test('both show the same to anybody', async () => {
    const anybody = server.door('');
    const { status, json } = await anybody.rest('GET', '/v1/events/catalogue');
    expect(status).toBe(200);
    expect(json.data.map(({ type }: { type: string }) => type)).toEqual(EVENT_TYPES.map(({ type }) => type));
    const fields = 'type platform summary delivered subscribable shape example';
    const { json: answer } = await anybody.gql(`{ eventCatalogue { ${fields} } }`);
    const upper = json.data.map((one: { delivered: string }) => ({ ...one, delivered: one.delivered.toUpperCase() }));
    expect([json.data, upper]).toContainEqual(answer.data.eventCatalogue);
  });

  test('a test event of each type, with nothing but its type, arrives with a lifelike payload of now', async () => {
    const listener = await Listener.to(server.ws_url, me.access_token, `events:${me.account_id}`);
    const begun = Date.now();
    for (const { type, example } of EVENT_TYPES.filter((one) => /^(twitch|spotify|discord):/.test(one.type))) {
      const { status, json } = await me.door.rest('POST', '/v1/events/test', { body: { event_type: type } });
      expect([type, status, Object.keys(json.event.raw)]).toEqual([type, 200, Object.keys(example)]);
      const message = await listener.next(({ event_type }) => event_type === type);
      expect(message.data.payload).toEqual(json.event.raw);
    }
    const follower = await listener.next(({ event_type }) => event_type === 'twitch:follower');
    listener.close();
    expect(Date.parse(follower.data.payload.followed_at)).toBeGreaterThanOrEqual(begun - 1000);
    const { json } = await me.door.rest('GET', '/v1/events');
    expect(json.data).toEqual([]);
  });

  test('what is asked for goes before the example, and a type of one’s own has none', async () => {
    const send = async (body: object) => (await me.door.rest('POST', '/v1/events/test', { body })).json.event.raw;
    expect(await send({ event_type: 'twitch:cheer', raw: { bits: 7 } })).toEqual({ bits: 7 });
    expect(await send({ event_type: 'twitch:cheer', raw: {} })).toEqual({});
    expect(await send({ event_type: 'myext:scored' })).toEqual({});
  });
});
