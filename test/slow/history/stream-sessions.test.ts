import { v7 as uuid } from 'uuid';
import { TOPICS, type RecordEnvelope } from '../../../domain/common/records';
import { engines, type Engines } from '../../support/projections';
import { chatRecord, message } from '../../support/chat-records';
import { Listener } from '../../support/listener';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

const MASTER_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;
/** Two hours ago, at a whole minute. */
const BEGAN = Math.floor((Date.now() - 7_200_000) / 60_000) * 60_000;
const at = (minutes: number, seconds = 0) => new Date(BEGAN + minutes * 60_000 + seconds * 1000).toISOString();

let server: TestServer;
let on: Engines;
let owner: ApiClient;
let account_id: string;
/** The account's own channels. */
let kick: string;
let twitch: string;
beforeAll(async () => {
  server = await startServer({
    env: { LUMIO_SECRETS__KEYS: MASTER_KEY, LUMIO_HISTORY__SESSION_GRACE: '2m', LUMIO_HISTORY__COUNT_EVERY: '1s' },
  });
  on = await engines(server.database!.db as never);
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  ({ account_id } = server.credentials);
  const { connections } = server.credentials;
  kick = connections.kick.platform_channel_id;
  twitch = connections.twitch.platform_channel_id;
  await streamed();
});
afterAll(async () => {
  await on?.close();
  await server?.dispose();
});

const record = (type: string, occurred_at: string, raw: object): RecordEnvelope => ({
  id: uuid(),
  account_id,
  type,
  platform: type.slice(0, type.indexOf(':')),
  external_id: null,
  occurred_at,
  received_at: occurred_at,
  subject: null,
  raw: JSON.stringify(raw),
  trace: null,
});
const events = (...records: RecordEnvelope[]) => on.records.append(TOPICS.platform_events, records);
const kickTurn = (is_live: boolean, started_at: string, ended_at: string | null, title: string) =>
  record(is_live ? 'kick:stream_online' : 'kick:stream_offline', ended_at ?? started_at, {
    broadcaster: { user_id: Number(kick) },
    is_live,
    title,
    started_at,
    ended_at,
  });
const kickId = (started_at: string) => `${kick}-${Date.parse(started_at) / 1000}`;
const sample = (platform: string, broadcast_id: string, minute: number, viewer_count: number, category: string) => ({
  ...record('stream:sample', at(minute), {
    broadcast_id,
    viewer_count,
    follower_count: platform === 'twitch' ? 1_000 + minute : null,
    title: 'Boss fight',
    category,
    tags: [],
  }),
  platform,
});
const said = (author: string, text: string, minute: number, second: number, more = {}) =>
  chatRecord(message(author, text, more), { account_id, at: at(minute, second) });

/** An hour on Kick; half an hour later on Twitch as well, for an hour; a drop of one minute on Kick. */
async function streamed() {
  const bot = { author: { id: '9', username: 'nightbot', display_name: 'Nightbot', avatar_url: null } };
  const emote = { type: 'emote', text: 'Kappa', id: '25', provider: 'twitch', url: 'https://e/25', animated: false };
  const gif = { type: 'gif', text: 'wave', id: 'g1', provider: 'kick', url: 'https://g/1' };
  const chat = [
    said('1', 'before', -1, 0, { platform: 'kick' }),
    said('1', 'first', 0, 0, { platform: 'kick' }),
    said('1', 'second', 10, 0, { platform: 'kick' }),
    said('2', 'wave', 20, 0, { platform: 'kick', parts: [gif] }),
    said('9', 'Follow!', 30, 0, { platform: 'kick', ...bot }),
    said('3', 'Kappa Kappa', 40, 0, { parts: [emote, { type: 'text', text: ' ' }, emote] }),
    said('3', 'elsewhere', 41, 0, {
      shared_chat: {
        channel: { id: '5', username: 'x', display_name: 'X', avatar_url: null },
        message_id: null,
        badges: [],
      },
    }),
    said('1', 'after the drop', 65, 0, { platform: 'kick' }),
    said('1', 'late', 95, 0, { platform: 'kick' }),
  ];
  for (const one of chat) await on.records.append(TOPICS.chat_events, [one]);
  await on.records.append(TOPICS.stream_samples, [
    ...Array.from({ length: 60 }, (_, minute) => sample('kick', kickId(at(0)), minute, minute + 1, 'Chess')),
    ...Array.from({ length: 60 }, (_, minute) =>
      sample('twitch', 'tw-1', minute + 30, 100, minute < 30 ? 'Chess' : 'Go'),
    ),
  ]);
  // The session job counts the rows that it finds: chat and samples have topics of their own, and may be later.
  const { db } = server.database!;
  await eventually(async () => {
    const [rows] = await db.query<{ messages: number; samples: number }>(
      `select (select count(*)::int from platform_chat_messages where account_id = $1) as messages,
         (select count(*)::int from stream_samples where account_id = $1) as samples`,
      [account_id],
    );
    return rows!.messages === chat.length && rows!.samples === 120 ? true : undefined;
  }, 'chat and samples to be stored');
  await events(
    kickTurn(true, at(0), null, '=Boss fight'),
    record('kick:follower', at(5), { follower: { user_id: 1 } }),
    record('kick:gift', at(6), { giftees: Array.from({ length: 50 }, (_, n) => ({ user_id: n })) }),
    record('twitch:stream_online', at(30), { id: 'tw-1', broadcaster_user_id: twitch, started_at: at(30) }),
    record('twitch:subscribe', at(35), { sub: { is_prime: true } }),
    record('twitch:gift', at(36), { community_sub_gift: { id: 'c', total: 3 } }),
    record('twitch:gift', at(36), { sub_gift: { community_gift_id: 'c' } }),
    record('twitch:gift', at(37), { sub_gift: { community_gift_id: null } }),
    record('twitch:raid', at(38), { viewers: 40 }),
    record('twitch:raid', at(91), { viewers: 400 }),
    kickTurn(false, at(0), at(60), '=Boss fight'),
    kickTurn(true, at(61), null, '=Boss fight'),
    kickTurn(false, at(61), at(70), '=Boss fight'),
    record('twitch:stream_offline', at(90), { broadcaster_user_id: twitch }),
    kickTurn(true, at(115), null, 'Still here'),
  );
  // Turns that the account makes up: of a channel that it does not have, and of no platform.
  for (const [event_type, raw] of [
    ['twitch:stream_online', { id: 'forged', broadcaster_user_id: '424242', started_at: at(0) }],
    ['myspace:stream_online', { id: 'poison', broadcaster_user_id: '1', started_at: at(0) }],
  ] as const)
    expect((await owner.send('POST', '/v1/events/emit', { event_type, raw, created_at: at(0) })).status).toBe(200);
  const emitted = { event_type: 'kick:follower', raw: {}, created_at: at(7) };
  expect((await owner.send('POST', '/v1/events/emit', emitted)).status).toBe(200);
}

interface Session {
  id: string;
  status: string;
  [figure: string]: unknown;
}
const list = async (query = '') => (await owner.get(`/v1/history${query}`)).body.data as Session[];
/** The session on air, once the one before it has ended. */
const living = () =>
  eventually(async () => {
    const sessions = await list();
    return sessions.length === 2 && sessions.some(({ status }) => status === 'finalized')
      ? sessions.find(({ status }) => status === 'live')
      : undefined;
  }, 'the live session');

describe('a session', () => {
  test('that goes on is announced with its figures, which the list shows', async () => {
    const { id } = await living();
    const listener = await Listener.to(server.ws_url, server.credentials.access_token, `history:${account_id}`);
    try {
      await on.records.append(TOPICS.chat_events, [
        chatRecord(message('1', 'hi', { platform: 'kick' }), { account_id, at: new Date().toISOString() }),
      ]);
      const updated: any = await listener.next(
        (one: any) => one.event_type === 'history:session_updated' && one.data.total_messages === 1,
      );
      expect(updated.data).toMatchObject({ session_id: id, id, status: 'live', platforms: ['kick'] });
      expect((await list()).find((one) => one.id === id)).toMatchObject({ total_messages: 1, unique_chatters: 1 });
    } finally {
      listener.close();
    }
  });
});
