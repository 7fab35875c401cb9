import { TOPICS } from '../../../domain/common/records';
import { normaliseKick } from '../../../ingest/kick/webhook';
import { envelopeOf } from '../../../ingest/runtime/parse/envelope';
import { type DraftRecord, type Outcome, toDelivery } from '../../../ingest/runtime/webhook/webhook';
import { normaliseTrovoChat } from '../../../ingest/trovo/chat';
import { normaliseTwitch } from '../../../ingest/twitch/normalise';
import { normaliseYoutubeChat } from '../../../ingest/youtube/chat';
import { engines, type Engines } from '../../support/projections';
import { runLumio, startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

const BEGAN = Math.floor((Date.now() - 7_200_000) / 60_000) * 60_000;
const ms = (minute: number) => BEGAN + minute * 60_000;
const at = (minute: number) => new Date(ms(minute)).toISOString();

let server: TestServer;
let on: Engines;
let owner: ApiClient;
let account_id: string;
let channels: Record<Name, string>;
beforeAll(async () => {
  server = await startServer({
    env: {
      LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      LUMIO_HISTORY__SESSION_GRACE: '2m',
      LUMIO_HISTORY__COUNT_EVERY: '1s',
    },
  });
  on = await engines(server.database!.db as never);
  const { access_token, connections } = server.credentials;
  ({ account_id } = server.credentials);
  owner = new ApiClient(server.base_url, access_token);
  const of = (name: Name) => connections[name].platform_channel_id;
  channels = { twitch: of('twitch'), youtube: of('youtube'), kick: of('kick'), trovo: of('trovo') };
});
afterAll(async () => {
  await on?.close();
  await server?.dispose();
});

const NAMES = ['twitch', 'youtube', 'kick', 'trovo'] as const;
type Name = (typeof NAMES)[number];
interface Message {
  id: string;
  minute: number;
  author: number;
}

const connectionOf = (name: Name) => ({ connection_id: name, account_id, channel_id: channels[name] });
const received = (item: object, minute: number) => ({ text: JSON.stringify(item), received_at: ms(minute) });
const kickPerson = (user_id: number) => ({ user_id, username: `kick_${user_id}`, channel_slug: `kick-${user_id}` });
const kick = (type: string, id: string, minute: number, body: object): Outcome => {
  const headers = { 'kick-event-type': type, 'kick-event-message-id': id, 'kick-event-version': '1' };
  const bytes = Buffer.from(JSON.stringify({ broadcaster: kickPerson(Number(channels.kick)), ...body }));
  return normaliseKick(toDelivery(headers, bytes, ms(minute)));
};
const twitch = (type: string, id: string, minute: number, event: object): Outcome => {
  const metadata = { message_id: id, message_type: 'notification', message_timestamp: at(minute) };
  const payload = { subscription: { type }, event: { broadcaster_user_id: channels.twitch, ...event } };
  const frame = { metadata: { ...metadata, subscription_type: type }, payload };
  return normaliseTwitch(received(frame, minute), connectionOf('twitch'));
};
const youtube = (id: string, minute: number, author: string, type: string, more: object): Outcome => {
  const snippet = { type, liveChatId: 'live-chat', authorChannelId: author, publishedAt: at(minute), ...more };
  const item = { id, snippet, authorDetails: { channelId: author, displayName: author } };
  return normaliseYoutubeChat(received(item, minute), connectionOf('youtube'));
};
const trovo = (id: string, minute: number, author: number, item: object): Outcome => {
  const sender = { nick_name: `T${author}`, user_name: `trovo_${author}`, sender_id: author };
  const timed = { message_id: id, send_time: ms(minute) / 1000, ...sender, ...item };
  return normaliseTrovoChat(received(timed, minute), connectionOf('trovo'));
};

/** A message as each platform sends it, by its adapter. */
const SAID: Record<Name, (message: Message) => Outcome> = {
  twitch: ({ id, minute, author }) =>
    twitch('channel.chat.message', id, minute, {
      ...{ chatter_user_id: String(author), chatter_user_login: `twitch_${author}`, chatter_user_name: `T${author}` },
      ...{ message_id: id, message_type: 'text', badges: [], color: '' },
      message: { text: 'hi', fragments: [{ type: 'text', text: 'hi' }] },
    }),
  youtube: ({ id, minute, author }) =>
    youtube(id, minute, `UCviewer${author}`, 'textMessageEvent', { textMessageDetails: { messageText: 'hi' } }),
  kick: ({ id, minute, author }) =>
    kick('chat.message.sent', id, minute, {
      ...{ message_id: id, sender: kickPerson(author), content: 'hi', emotes: null, created_at: at(minute) },
    }),
  trovo: ({ id, minute, author }) => trovo(id, minute, author, { type: 0, content: 'hi' }),
};
/** Messages and people of each platform. */
const CHATS: Record<Name, [messages: number, people: number]> = {
  ...{ twitch: [10, 3], youtube: [6, 2], kick: [8, 2], trovo: [4, 1] },
};

const turnOf = (name: Name, online: boolean): DraftRecord => {
  const broadcast_id = `${name}-broadcast`;
  const raw = {
    twitch: { id: broadcast_id, broadcaster_user_id: channels.twitch, started_at: at(0) },
    youtube: {
      ...{ id: broadcast_id, channel_id: channels.youtube },
      snippet: { channelId: channels.youtube, actualStartTime: at(0), liveChatId: 'live-chat' },
    },
    kick: { broadcaster: { user_id: Number(channels.kick) }, id: broadcast_id, started_at: at(0) },
    trovo: { id: broadcast_id, channel_id: channels.trovo, started_at: at(0) },
  }[name];
  return {
    ...{ owner: { kind: 'account', account_id }, topic: TOPICS.platform_events, platform: name },
    ...{ type: `${name}:stream_${online ? 'online' : 'offline'}`, external_id: `${name}:${online}` },
    ...{ occurred_at: at(online ? 0 : 60), subject: null, raw: JSON.stringify({ ...raw, title: 'Boss fight' }) },
    reported_at: at(online ? 0 : 60),
  };
};
const sampleOf = (name: Name, minute: number): DraftRecord => ({
  ...{ owner: { kind: 'account', account_id }, topic: TOPICS.stream_samples, platform: name, type: 'stream:sample' },
  ...{ external_id: `${name}:sample:${minute}`, occurred_at: at(minute), subject: null },
  raw: JSON.stringify({
    ...{ broadcast_id: `${name}-broadcast`, viewer_count: 10, follower_count: null },
    ...{ title: 'Boss fight', category: 'Chess', tags: [] },
  }),
});

const draftsOf = (outcome: Outcome): DraftRecord[] => {
  if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
  return outcome.records;
};
/** An hour on all platforms: messages in it, one before it and one at its end, followers, subscriptions and gifts. */
const drafts = (): DraftRecord[] => [
  ...NAMES.flatMap((name) => [
    ...[turnOf(name, true), turnOf(name, false)],
    ...Array.from({ length: 60 }, (_, minute) => sampleOf(name, minute)),
    ...Array.from({ length: CHATS[name][0] }, (_, n) =>
      draftsOf(SAID[name]({ id: `${name}-${n}`, minute: 1 + n, author: 1 + (n % CHATS[name][1]) })),
    ).flat(),
    ...[-1, 60].flatMap((minute) => draftsOf(SAID[name]({ id: `${name}-at-${minute}`, minute, author: 99 }))),
  ]),
  ...[5, 6].flatMap((minute) =>
    draftsOf(
      twitch('channel.follow', `follow-${minute}`, minute, {
        ...{ user_id: `50${minute}`, user_login: 'follower', user_name: 'Follower', followed_at: at(minute) },
      }),
    ),
  ),
  ...draftsOf(kick('channel.followed', 'kick-follow', 7, { follower: kickPerson(60), created_at: at(7) })),
  ...draftsOf(trovo('trovo-follow', 8, 70, { type: 5003, content: '' })),
  ...draftsOf(trovo('trovo-subscription', 9, 71, { type: 5001, content: 'Tier 1' })),
  ...draftsOf(trovo('trovo-gift', 10, 72, { type: 5005, content: '1' })),
  ...draftsOf(youtube('sponsor', 11, 'UCnew', 'newSponsorEvent', { newSponsorDetails: { isUpgrade: false } })),
  ...draftsOf(
    youtube('gifting', 12, 'UCgiver', 'membershipGiftingEvent', {
      membershipGiftingDetails: { giftMembershipsCount: 5 },
    }),
  ),
];

/** Numbers from a seed, so that a failed order can be repeated. */
function shuffled<Item>(items: readonly Item[], seed: number): Item[] {
  let state = seed;
  const next = () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  return items
    .map((item) => ({ item, order: next() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item);
}

const FIGURES = {
  ...{ status: 'finalized', session_type: 'multi', duration_secs: 3600, total_messages: 28, unique_chatters: 8 },
  ...{ new_followers: 4, new_paid_subs: 2, gifted_subs: 6, peak_viewers: 40, avg_viewers: 40, hours_watched: 40 },
};
const session = (figures: object) =>
  eventually(async () => {
    const [found, ...more] = (await owner.get('/v1/history')).body.data as Record<string, unknown>[];
    const is_whole = Object.entries(figures).every(([name, value]) => found?.[name] === value);
    return is_whole && more.length === 0 ? found : undefined;
  }, 'the figures of the session');

test('shuffled, repeated records of the four adapters give exact figures, also after a rebuild of all read models', async () => {
  for (const draft of shuffled([...drafts(), ...drafts()], 11)) {
    const { topic, occurred_at } = draft;
    await on.records.append(topic, [envelopeOf(draft, account_id, Date.parse(occurred_at), null)]);
  }
  const { id } = (await session(FIGURES))!;
  const query = `{ channelHistoryReport(id: "${id}") {
    sessionType totalMessages uniqueChatters newFollowers newPaidSubs giftedSubs peakViewers avgViewers
    streams { platform totalMessages uniqueChatters } } }`;
  const { streams, ...sums } = (await owner.gql(query)).data.channelHistoryReport;
  expect(sums).toEqual({
    ...{ sessionType: 'multi', totalMessages: 28, uniqueChatters: 8, newFollowers: 4, newPaidSubs: 2, giftedSubs: 6 },
    ...{ peakViewers: 40, avgViewers: 40 },
  });
  const counts = streams.map((one: Record<string, unknown>) => [
    ...[one['platform'], one['totalMessages'], one['uniqueChatters']],
  ]);
  expect(Object.fromEntries(counts.map(([name, ...of]: [string, ...number[]]) => [name, of]))).toEqual(CHATS);

  const rebuilt = await runLumio(['rebuild', '--all', '--quiet'], server.env);
  expect([rebuilt.stderr, rebuilt.code]).toEqual(['', 0]);
  // A late message is counted with the rebuilt rows, next to all that was there.
  const late = draftsOf(SAID.trovo({ id: 'late', minute: 20, author: 1 }))[0]!;
  await on.records.append(late.topic, [envelopeOf(late, account_id, ms(20), null)]);
  await session({ ...FIGURES, total_messages: 29 });
});
