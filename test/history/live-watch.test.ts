import { v7 as uuid } from 'uuid';
import { type ConnectionTokens, TokenUnavailable } from '../../services/connections/connection-tokens';
import type { ActiveConnection } from '../../services/connections/active-connections';
import type { RecordEnvelope } from '../../domain/common/records';
import type { LoggedRecord } from '../../engines/records/port';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createKickLook } from '../../ingest/kick/live';
import { normaliseKick } from '../../ingest/kick/webhook';
import { createIntake } from '../../ingest/runtime/webhook/intake';
import { type LiveLook, startLiveWatch, type WatchedChannel } from '../../ingest/runtime/live-status/live-watch';
import { toDelivery } from '../../ingest/runtime/webhook/webhook';
import { createTrovoLook } from '../../ingest/trovo/live';
import { createTwitchLook } from '../../ingest/twitch/live';
import { createYoutubeLook } from '../../ingest/youtube/live';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import type { Platform } from '../../domain/common/vendors';
import { eventLog } from '../../projections/events/events';
import { applyRecords } from '../../projections/runtime/drive/apply';
import { createHttpClients } from '../../vendors/http/client';
import { HttpFailed } from '../../vendors/http/port';
import { kickChannels } from '../../vendors/kick/channels';
import { trovoOpenApi } from '../../vendors/trovo/open-api';
import type { TwitchStreams } from '../../vendors/twitch/port';
import { youtubeDataApi } from '../../vendors/youtube/data-api';
import { type TestDatabase, testDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { connectionsOf, keptRecords } from '../support/webhooks';
import { eventually } from '../support/vendor-cloud';
import { FakeKick } from '../vendors/kick-cloud';
import { FakeTrovo } from '../vendors/trovo-cloud';
import { FakeYoutube } from '../vendors/youtube-cloud';

const metrics = createPrometheusMetrics({});
const http = createHttpClients({ metrics, allow_loopback: true });
const ACCOUNT = uuid();
let t: TestDatabase;
let kick: FakeKick;
let trovo: FakeTrovo;
let youtube: FakeYoutube;
beforeAll(async () => {
  t = await testDatabase();
  [kick, trovo, youtube] = [new FakeKick(), new FakeTrovo(), new FakeYoutube()];
  await Promise.all([kick.start(), trovo.start(), youtube.start()]);
});
afterAll(async () => {
  await Promise.all([kick.close(), trovo.close(), youtube.close()]);
  await http.close();
  await t.drop();
});

const connection = (platform: Platform, platform_channel_id: string, account_id = ACCOUNT): ActiveConnection => ({
  connection_id: uuid(),
  account_id,
  platform,
  kind: 'channel',
  platform_channel_id,
  client_id: 'app',
  bot_enabled: true,
  since: new Date().toISOString(),
});

/** A watch whose records are applied as soon as they are stored, by the event log itself. */
function watching(
  look: LiveLook,
  living: readonly ActiveConnection[],
  { pieces, gone_ms = 0 }: { pieces?: number; gone_ms?: number } = {},
) {
  const records = keptRecords();
  const messages: { channel: string; event_type: string; data: any }[] = [];
  const append = records.append.bind(records);
  records.append = async (topic, envelopes) => {
    const ends = await append(topic, envelopes);
    if (topic === 'platform-events') messages.push(...(await applied(envelopes)));
    return ends;
  };
  const watch = startLiveWatch({
    looks: [look],
    living: {
      of: async (platform) => living.filter((one) => one.platform === platform),
      onChange: () => () => undefined,
    },
    db: t.db,
    // One process that holds every piece.
    shares: {
      offer(_name, work) {
        const ending = new AbortController();
        const ended = work(ending.signal);
        return {
          async stop() {
            ending.abort();
            await ended;
          },
        };
      },
    },
    intake: createIntake({ connections: connectionsOf({}, null), records, log: silentLog }),
    log: silentLog,
    metrics,
    pieces,
    every_ms: 30,
    gone_ms,
  });
  const types = () => records.kept.map(({ type }) => type);
  return { watch, records, messages, types };
}

let offset = 0;
async function applied(envelopes: readonly RecordEnvelope[]) {
  const batch = envelopes.map((record): LoggedRecord => ({
    ...record,
    topic: 'platform-events',
    partition: 0,
    offset: offset++,
  }));
  const sent = await t.db.transaction((tx) => applyRecords(eventLog, batch, tx, { rebuilding: false }));
  return sent.map(({ channel, event_type, data }) => ({ channel, event_type, data: JSON.parse(data) }));
}
const turnsOf = (messages: readonly { channel: string; event_type: string }[], account_id = ACCOUNT) =>
  messages.filter(({ channel }) => channel === `channel-status:${account_id}`).map(({ event_type }) => event_type);
const tokensOf = (given: () => string): ConnectionTokens => ({ token: async () => given() });

test('a Kick channel that goes live and offline is told once, with a sample a minute', async () => {
  const token = kick.tokens.give('7').access_token;
  const channel = kick.channel(7);
  const look = createKickLook(
    kickChannels(http, { api_url: kick.base_url }),
    tokensOf(() => token),
  );
  const { watch, records, messages, types } = watching(look, [connection('kick', '7')]);
  try {
    await eventually(async () => kick.asked('/public/v1/channels') > 2 || undefined, 'looks');
    expect(types()).toEqual([]);
    kick.goLive(channel, 42);
    await eventually(async () => types().includes('stream:sample') || undefined, 'a sample');
    // The webhook tells the same; it counts as the same event.
    const payload = { broadcaster: { user_id: 7 }, is_live: true, title: 'x', started_at: channel.started_at };
    const delivery = toDelivery(
      { 'kick-event-type': 'livestream.status.updated' },
      Buffer.from(JSON.stringify(payload)),
      0,
    );
    const outcome = normaliseKick(delivery);
    const online = records.kept.find(({ type }) => type === 'kick:stream_online')!;
    expect(outcome).toMatchObject({ records: [{ external_id: online.external_id, type: online.type }] });
    const sample = records.kept.find(({ type }) => type === 'stream:sample')!;
    expect(sample.occurred_at).toMatch(/:00\.000Z$/);
    expect(JSON.parse(sample.raw)).toMatchObject({ viewer_count: 42, follower_count: null, tags: ['talk'] });

    // One look that does not see it proves nothing.
    kick.fail({ path: '/public/v1/channels', status: 429, retry_after: 0, times: 2 });
    kick.goOffline(channel);
    await eventually(async () => types().includes('kick:stream_offline') || undefined, 'the end');
  } finally {
    await watch.stop();
  }
  expect(types().filter((type) => type.startsWith('kick:'))).toEqual(['kick:stream_online', 'kick:stream_offline']);
  expect(turnsOf(messages)).toEqual(['channel:online', 'channel:offline']);
  expect(
    messages.find(({ event_type, channel: name }) => event_type === 'channel:online' && name.startsWith('events:')),
  ).toMatchObject({ data: { type: 'channel:online', platform: 'kick', payload: { channel_id: '7', ended_at: null } } });
});

test('a platform that asks for a pause is not asked before its end, whichever app was told so', async () => {
  const RETRY_AFTER_MS = 400;
  const looks: number[] = [];
  const look: LiveLook = {
    ...{ platform: 'kick', most: 1, every_ms: 30, turns: true },
    look: ([channel]) => {
      looks.push(performance.now());
      return Promise.reject(
        new HttpFailed('kick', 429, channel!.platform_channel_id === '9' ? RETRY_AFTER_MS : undefined),
      );
    },
  };
  const { watch } = watching(look, [connection('kick', '8'), connection('kick', '9')], { pieces: 1 });
  try {
    await eventually(async () => looks.length >= 4 || undefined, 'the second look');
    expect(looks[2]! - looks[1]!).toBeGreaterThanOrEqual(RETRY_AFTER_MS - 1);
  } finally {
    await watch.stop();
  }
});

test('a channel that shows more than can be stored hides no other', async () => {
  const shown = (title: string) => ({
    broadcasts: [
      {
        ...{
          broadcast_id: `of ${title.length}`,
          viewer_count: 1,
          follower_count: null,
          title,
          category: null,
          tags: [],
        },
        ...{ started_at: '2026-11-22T10:00:00Z', raw: { title } },
      },
    ],
    over: [],
  });
  const living = [connection('trovo', 'long'), connection('trovo', 'short', uuid())];
  const look: LiveLook = {
    ...{ platform: 'trovo', most: 10, every_ms: 30, turns: true },
    look: async (channels) =>
      new Map(
        channels.map((one) => [one.connection_id, shown('x'.repeat(one.platform_channel_id === 'long' ? 3 << 20 : 1))]),
      ),
  };
  // Both are looked at together.
  const { watch, records, types } = watching(look, living, { pieces: 1 });
  try {
    await eventually(async () => types().includes('stream:sample') || undefined, 'a sample');
    expect(types()).toContain('trovo:stream_online');
  } finally {
    await watch.stop();
  }
  expect(new Set(records.kept.map(({ account_id }) => account_id))).toEqual(new Set([living[1]!.account_id]));
});

test.each([
  ['two looks', 0, 2],
  ['any number of looks within the time of an end', 60_000, 6],
])('a broadcast that %s do not show goes on', async (_what, gone_ms, hidden) => {
  const one = connection('trovo', 'seen', uuid());
  const broadcast = {
    ...{ broadcast_id: 'b', viewer_count: 1, follower_count: null, title: 't', category: null, tags: [] },
    ...{ started_at: '2026-11-22T10:00:00Z', raw: { id: 'b', channel_id: 'seen' } },
  };
  let looks = 0;
  const look: LiveLook = {
    ...{ platform: 'trovo', most: 10, every_ms: 30, turns: true },
    async look(_channels, online) {
      if (online.size > 0) looks += 1;
      const shown = looks === 0 || looks > hidden;
      return new Map([[one.connection_id, { broadcasts: shown ? [broadcast] : [], over: [] }]]);
    },
  };
  const { watch, types } = watching(look, [one], { pieces: 1, gone_ms });
  try {
    await eventually(async () => looks > hidden + 3 || undefined, 'looks');
  } finally {
    await watch.stop();
  }
  expect(types().filter((type) => type.startsWith('trovo:'))).toEqual(['trovo:stream_online']);
});

/** A look that shows the broadcast `b` of each channel while `air.shown` is true. */
function showing(platform: Platform, turns: boolean, air: { shown: boolean; looks: number }): LiveLook {
  const figures = { viewer_count: null, follower_count: null, title: 't', category: null, tags: [] };
  const broadcast = { broadcast_id: 'b', ...figures, started_at: '2026-11-22T10:00:00Z', raw: { id: 'b' } };
  return {
    ...{ platform, most: 10, every_ms: 30, turns },
    async look(channels) {
      air.looks += 1;
      const seen = { broadcasts: air.shown ? [broadcast] : [], over: [] };
      return new Map(channels.map(({ connection_id }) => [connection_id, seen]));
    },
  };
}

test('a broadcast that looks have ended goes on when it is seen again', async () => {
  const one = connection('trovo', 'again', uuid());
  const air = { shown: true, looks: 0 };
  const { watch, messages } = watching(showing('trovo', true, air), [one], { pieces: 1 });
  const turns = () => turnsOf(messages, one.account_id);
  try {
    await eventually(async () => turns().length === 1 || undefined, 'the begin');
    air.shown = false;
    await eventually(async () => turns().length === 2 || undefined, 'the end');
    air.shown = true;
    await eventually(async () => turns().length === 3 || undefined, 'the broadcast again');
    air.shown = false;
    await eventually(async () => turns().length === 4 || undefined, 'the second end');
  } finally {
    await watch.stop();
  }
  expect(turns()).toEqual(['channel:online', 'channel:offline', 'channel:online', 'channel:offline']);
});

test('polls of Twitch correct what a look has inferred, and nothing else', async () => {
  const [inferred, reported] = [connection('twitch', 'inferred', uuid()), connection('twitch', 'reported', uuid())];
  const minutes = (ago: number) => new Date(Date.now() - ago * 60_000).toISOString();
  const turn = ({ account_id }: ActiveConnection, name: string, at: string, source: object) => ({
    ...{ id: uuid(), account_id, type: `twitch:${name}`, platform: 'twitch', external_id: uuid(), occurred_at: at },
    ...{ received_at: at, subject: null, raw: JSON.stringify({ id: 'b' }), trace: null, ...source },
  });
  for (const [one, source] of [
    [inferred, 'seen_at'],
    [reported, 'reported_at'],
  ] as const) {
    await applied([turn(one, 'stream_online', minutes(30), { reported_at: minutes(30) })]);
    await applied([turn(one, 'stream_offline', minutes(20), { [source]: minutes(20) })]);
  }
  const unknown = connection('twitch', 'unknown', uuid());
  const air = { shown: true, looks: 0 };
  const living = [inferred, reported, unknown];
  const { watch, messages, records } = watching(showing('twitch', false, air), living, { pieces: 1 });
  const turns = () => turnsOf(messages, inferred.account_id);
  try {
    await eventually(async () => turns().length === 1 || undefined, 'the broadcast again');
    air.shown = false;
    await eventually(async () => turns().length === 2 || undefined, 'the end');
  } finally {
    await watch.stop();
  }
  expect(turns()).toEqual(['channel:online', 'channel:offline']);
  expect(new Set(records.kept.map(({ account_id }) => account_id))).toEqual(new Set([inferred.account_id]));
});

test('followers on Twitch are counted a few channels at a time, now and then, and one in trouble hides no other', async () => {
  const channels = Array.from({ length: 30 }, (_, n) => connection('twitch', String(n + 1), uuid()));
  let [asked, at_once, most] = [0, 0, 0];
  const api = {
    live: async (ids: readonly string[]) => ids.map((user_id) => ({ user_id, id: `s-${user_id}`, viewer_count: 1 })),
    async followers(channel_id: string) {
      asked += 1;
      most = Math.max(most, (at_once += 1));
      await new Promise((resume) => setTimeout(resume, 5));
      at_once -= 1;
      if (channel_id === '7') throw new TokenUnavailable('planted');
      return Number(channel_id);
    },
  } as unknown as TwitchStreams;
  const look = createTwitchLook(
    api,
    tokensOf(() => 'token'),
  );
  const counts = async () => {
    const seen = await look.look(channels as WatchedChannel[], new Map());
    return channels.map(({ connection_id }) => seen.get(connection_id)!.broadcasts[0]!.follower_count);
  };
  const expected = channels.map((_, n) => (n === 6 ? null : n + 1));
  expect(await counts()).toEqual(expected);
  expect([asked, most]).toEqual([30, 8]);
  expect(await counts()).toEqual(expected);
  // The one in trouble alone is asked for again.
  expect(asked).toBe(31);
});

test('a Trovo channel is looked at by its app alone', async () => {
  const channel = trovo.channel('100');
  const look = createTrovoLook(trovoOpenApi(http, { api_url: trovo.base_url, chat_url: trovo.chat_url }));
  const { watch, records, types } = watching(look, [connection('trovo', '100'), connection('trovo', 'gone', uuid())]);
  try {
    trovo.goLive(channel, 9);
    await eventually(async () => types().includes('stream:sample') || undefined, 'a sample');
    trovo.goOffline(channel);
    await eventually(async () => types().includes('trovo:stream_offline') || undefined, 'the end');
  } finally {
    await watch.stop();
  }
  const sample = records.kept.find(({ type }) => type === 'stream:sample')!;
  expect(JSON.parse(sample.raw)).toMatchObject({ viewer_count: 9, follower_count: 27, category: 'Genshin Impact' });
});

test('YouTube is asked for fifty videos at once, a refused token is changed once, and a used up quota asks no more', async () => {
  let token = youtube.tokens.give('UCa').access_token;
  const tokens: ConnectionTokens = {
    token: async (_id, refused) => (refused === undefined ? token : (token = youtube.tokens.give('UCa').access_token)),
  };
  youtube.subscribers.set('UCa', 77);
  const quota = createYoutubeQuota({ db: t.db, daily_units: 1_000_000 });
  const look = createYoutubeLook(youtubeDataApi(http, { api_url: youtube.base_url }), tokens, quota);
  const { watch, records, messages, types } = watching(look, [connection('youtube', 'UCa')]);
  try {
    youtube.tokens.expire(token);
    const broadcast = youtube.goLive('UCa', { viewers: 5 });
    await eventually(async () => types().includes('stream:sample') || undefined, 'a sample');
    const online = records.kept.find(({ type }) => type === 'youtube:stream_online')!;
    expect(JSON.parse(online.raw)).toMatchObject({
      id: broadcast.video_id,
      snippet: { liveChatId: broadcast.live_chat_id },
    });
    const [row] = await t.db.query(`select live_chat_id, is_online from channel_status where platform = 'youtube'`);
    expect(row).toEqual({ live_chat_id: broadcast.live_chat_id, is_online: true });
    youtube.goOffline(broadcast);
    await eventually(async () => types().includes('youtube:stream_offline') || undefined, 'the end');
    await eventually(async () => turnsOf(messages).length > 1 || undefined, 'the news of it');
    expect(turnsOf(messages)).toEqual(['channel:online', 'channel:offline']);
    const sample = records.kept.find(({ type }) => type === 'stream:sample')!;
    expect(JSON.parse(sample.raw)).toMatchObject({ viewer_count: 5, follower_count: 77, tags: ['games'] });

    youtube.quota = 0;
    await eventually(async () => (await isExhausted()) || undefined, 'a quota that is used up');
    const asked = youtube.calls.length;
    await new Promise((resume) => setTimeout(resume, 300));
    expect(youtube.calls.length).toBe(asked);
  } finally {
    await watch.stop();
  }
});
test.each([null, '', '0001-01-01T00:00:00Z'])('a YouTube broadcast with the end %p is on air', async (no_end) => {
  const token = youtube.tokens.give('UCon').access_token;
  const quota = createYoutubeQuota({ db: t.db, daily_units: 1_000_000 });
  const tokens = { token: async () => token } as unknown as ConnectionTokens;
  const look = createYoutubeLook(youtubeDataApi(http, { api_url: youtube.base_url }), tokens, quota);
  const one = { ...connection('youtube', 'UCon'), client_id: uuid() };
  const { video_id } = youtube.goLive('UCon');
  Object.assign(youtube, { no_end, quota: 10_000 });
  const seen = (await look.look([one], new Map())).get(one.connection_id);
  youtube.broadcasts.delete(video_id);
  youtube.no_end = undefined;
  expect(seen).toMatchObject({ broadcasts: [{ broadcast_id: video_id }], over: [] });
});

test('YouTube: who may not stream at all is not on air; a day’s quota has two words for its end', async () => {
  const refuse = (reason: string) =>
    youtube.fail({ path: '/youtube/v3/liveBroadcasts', status: 403, body: { error: { errors: [{ reason }] } } });
  const api = youtubeDataApi(http, { api_url: youtube.base_url });
  const { access_token } = youtube.tokens.give('UCnone');
  refuse('liveStreamingNotEnabled');
  await expect(api.activeBroadcasts(access_token)).resolves.toEqual([]);
  refuse('dailyLimitExceeded');
  const ended: string[] = [];
  const quota = {
    take: async () => ({ granted: true }) as const,
    usedUp: async () => null,
    spend: async () => true,
    spare: async () => true,
    exhausted: async (client_id: string) => void ended.push(client_id),
  };
  const one = { ...connection('youtube', 'UCnone'), client_id: 'app' };
  const look = createYoutubeLook(api, { token: async () => access_token } as unknown as ConnectionTokens, quota);
  expect([...(await look.look([one], new Map()))]).toEqual([]);
  expect(ended).toEqual(['app']);
});

const isExhausted = async () => (await t.db.query('select exhausted from youtube_quota'))[0]?.exhausted === true;

describe('the share of a quota', () => {
  const quota = (daily_units: number) => createYoutubeQuota({ db: t.db, daily_units });

  test('nobody is let beyond the day’s units by many processes', async () => {
    const client = uuid();
    await quota(100).take(client, uuid(), 1);
    await t.db.query('update youtube_quota set used = 93 where client_id = $1', [client]);
    await t.db.query('update youtube_quota_shares set allowance = 5 where client_id = $1', [client]);
    const shares = Array.from({ length: 10 }, () => uuid());
    await t.db.query(
      `insert into youtube_quota_shares (client_id, connection_id, allowance, at)
       select $1, unnest($2::text[]), 5, clock_timestamp()`,
      [client, shares],
    );
    const all = await Promise.all(shares.map((connection_id) => quota(100).take(client, connection_id, 5)));
    expect(all.filter((one) => one.granted)).toHaveLength(1);
    expect(await quota(100).take(client, uuid(), 5)).toMatchObject({ granted: false, exhausted: true });
  });

  test('the crawler has what connections could have used until an hour ago, and did not', async () => {
    const client = uuid();
    const [{ hours }] = (await t.db.query(
      `select 24 - extract(epoch from ((now() at time zone 'America/Los_Angeles')::date + 1)::timestamp
         - (now() at time zone 'America/Los_Angeles'))::float8 / 3600 as hours`,
    )) as [{ hours: number }];
    // A unit for each tenth of an hour.
    const all = await Promise.all(Array.from({ length: 48 }, () => quota(240).spare(client, 5)));
    const granted = all.filter(Boolean).length;
    expect(Math.abs(granted - Math.max(0, Math.floor((hours - 1) * 2)))).toBeLessThanOrEqual(1);
    await t.db.query('delete from youtube_quota where client_id = $1', [client]);
    await t.db.query(
      `insert into youtube_quota (client_id, day, used)
       values ($1, (now() at time zone 'America/Los_Angeles')::date, 240)`,
      [client],
    );
    expect(await quota(240).spare(client, 1)).toBe(false);
    await quota(1_000_000).exhausted(client);
    expect(await quota(1_000_000).spare(client, 1)).toBe(false);
  });

  test('connections that begin, or begin a day, use no more than a quarter of it ahead of time', async () => {
    const client = uuid();
    const [{ passed }] = (await t.db.query(
      `select 1 - extract(epoch from ((now() at time zone 'America/Los_Angeles')::date + 1)::timestamp
         - (now() at time zone 'America/Los_Angeles'))::float8 / 86400 as passed`,
    )) as [{ passed: number }];
    const shares = Array.from({ length: 30 }, () => uuid());
    const takes = () => Promise.all(shares.map((connection_id) => quota(100).take(client, connection_id, 5)));
    const most = Math.min(20, Math.ceil(100 * (passed + 0.25 + 0.01) / 5)); // prettier-ignore
    const granted = (await takes()).filter((one) => one.granted).length;
    expect(granted).toBeLessThanOrEqual(most);
    expect(granted).toBeGreaterThanOrEqual(Math.min(5, most));
    // What they saved up before is gone with its day.
    await t.db.query('delete from youtube_quota where client_id = $1', [client]);
    await t.db.query(
      `update youtube_quota_shares set allowance = 12, at = now() - interval '2 days' where client_id = $1`,
      [client],
    );
    expect((await takes()).filter((one) => one.granted).length).toBeLessThanOrEqual(most);
  });

  test('a connection that has used what it has waits for its part of the remaining day', async () => {
    const client = uuid();
    const [one, other] = [uuid(), uuid()];
    const [{ seconds }] = (await t.db.query(
      `select extract(epoch from ((now() at time zone 'America/Los_Angeles')::date + 1)::timestamp
         at time zone 'America/Los_Angeles' - now())::int as seconds`,
    )) as [{ seconds: number }];
    // About a unit a second, whatever is left of the day: otherwise its last minutes earn units faster than calls take.
    const asked = quota(Math.max(seconds, 3_600));
    const waits: number[] = [];
    for (const connection_id of [one, one, one, other, one]) {
      const said = await asked.take(client, connection_id, 5);
      waits.push(said.granted ? 0 : said.wait_ms);
    }
    expect(waits.slice(0, 2)).toEqual([0, 0]);
    expect(waits[3]).toBe(0);
    // Of two that share it each earns half.
    expect(waits[4]! / waits[2]!).toBeGreaterThan(1.3);
    expect(waits[4]! / waits[2]!).toBeLessThan(2.7);
  });
});

describe('what is on air', () => {
  const turn = (account_id: string, type: string, raw: object, occurred_at: string) => ({
    id: uuid(),
    account_id,
    type,
    platform: type.split(':')[0]!,
    external_id: null,
    occurred_at,
    received_at: occurred_at,
    subject: null,
    raw: JSON.stringify(raw),
    trace: null,
  });
  const said = async (...records: RecordEnvelope[]) => {
    const types: string[] = [];
    for (const record of records)
      types.push(
        ...(await applied([record])).flatMap(({ event_type, channel }) =>
          channel.startsWith('events:') ? [event_type] : [],
        ),
      );
    return types.filter((type) => type.startsWith('channel:'));
  };

  test('a Twitch stream is over by its time, whichever is told first', async () => {
    const account = uuid();
    const online = turn(
      account,
      'twitch:stream_online',
      { id: 's1', broadcaster_user_id: '1', started_at: '2026-01-01T10:00:00Z' },
      '2026-01-01T10:00:00Z',
    );
    const offline = turn(account, 'twitch:stream_offline', { broadcaster_user_id: '1' }, '2026-01-01T11:00:00Z');
    expect(await said(offline, online)).toEqual([]);
    const next = turn(
      account,
      'twitch:stream_online',
      { id: 's2', started_at: '2026-01-01T11:00:01Z' },
      '2026-01-01T11:00:01Z',
    );
    const end = turn(account, 'twitch:stream_offline', {}, '2026-01-01T12:00:00Z');
    expect(await said(next, next, end, end)).toEqual(['channel:online', 'channel:offline']);
  });

  test('of two broadcasts of YouTube each is on air for itself, and what has no words of its own changes nothing', async () => {
    const account = uuid();
    const of = (type: string, id: string, at: string) => turn(account, `youtube:${type}`, { id, snippet: {} }, at);
    const first = of('stream_online', 'v1', '2026-01-01T10:00:00Z');
    const second = of('stream_online', 'v2', '2026-01-01T10:01:00Z');
    const ended = of('stream_offline', 'v1', '2026-01-01T10:02:00Z');
    expect(await said(first, second, ended)).toEqual(['channel:online', 'channel:online', 'channel:offline']);
    expect(
      await said(
        { ...first, id: uuid(), raw: '"[erased]"' },
        turn(account, 'kick:follower', {}, '2026-01-01T10:02:00Z'),
      ),
    ).toEqual(['channel:online']);
  });

  describe('of looks and reports', () => {
    const B = { id: 'b', started_at: '2026-01-01T10:00:00Z' };
    const at = (minute: number) => `2026-01-01T10:${String(minute).padStart(2, '0')}:00Z`;
    const begun = (source: object) => ({ ...source, name: 'stream_online', occurred_at: at(0) });
    const ended = (minute: number, source: object) => ({ ...source, name: 'stream_offline', occurred_at: at(minute) });
    const seen = (minute: number) => ({ seen_at: at(minute) });
    const reported = (minute: number) => ({ reported_at: at(minute) });
    /** Messages of these records of one broadcast; each name has one external id, whatever its source. */
    const turns = (...records: { name: string; occurred_at: string; raw?: object }[]) => {
      const account_id = uuid();
      return said(
        ...records.map(({ name, occurred_at, raw = B, ...source }) => ({
          ...turn(account_id, `kick:${name}`, raw, occurred_at),
          external_id: `kick:${name}:b`,
          ...source,
        })),
      );
    };
    const [ON, OFF] = ['channel:online', 'channel:offline'];

    test.each([
      ['seen', begun(seen(8)), [ON, OFF, ON]],
      ['reported', begun(reported(8)), [ON, OFF, ON]],
      ['seen by a look before the one that missed it', begun(seen(3)), [ON, OFF]],
      ['reported before the look that missed it', begun(reported(3)), [ON, OFF]],
      ['reported without a time of its own', begun({}), [ON, OFF]],
    ])('a broadcast that looks have ended, and that is %s', async (_what, again, expected) => {
      expect(await turns(begun(reported(0)), ended(5, seen(7)), again)).toEqual(expected);
    });

    test.each([
      ['at once', [ended(5, reported(5))], [ON, OFF]],
      ['after looks', [ended(4, seen(6)), ended(5, reported(5))], [ON, OFF]],
      ['after looks that saw it again', [ended(4, seen(6)), begun(seen(7)), ended(8, reported(8))], [ON, OFF, ON, OFF]],
    ])('an end that is reported %s is final', async (_what, ends, expected) => {
      expect(await turns(begun(seen(1)), ...ends, begun(seen(9)), ended(10, seen(10)), begun(seen(11)))).toEqual(
        expected,
      );
    });

    test('after an end of the channel only a later report resumes a broadcast', async () => {
      const channel_end = { name: 'stream_offline', occurred_at: at(5), ...reported(5), raw: {} };
      expect(await turns(begun(reported(0)), channel_end, begun(seen(9)))).toEqual([ON, OFF]);
      const later = begun(reported(6));
      expect(await turns(channel_end, later, ended(7, seen(8)), begun(seen(9)))).toEqual([ON, OFF, ON]);
    });

    test('applying the same records twice changes nothing', async () => {
      const account_id = uuid();
      const records = [begun(reported(0)), ended(5, seen(7)), begun(seen(8))].map(
        ({ name, occurred_at, ...source }) => ({
          ...turn(account_id, `kick:${name}`, B, occurred_at),
          external_id: `kick:${name}:b`,
          ...source,
        }),
      );
      expect(await said(...records)).toEqual([ON, OFF, ON]);
      expect(await said(...records)).toEqual([]);
      const types = await t.db.query('select type from platform_event_logs where account_id = $1', [account_id]);
      expect(types.map(({ type }) => type).sort()).toEqual(['kick:stream_offline', 'kick:stream_online']);
    });
  });

  describe('of reports in any order', () => {
    const BEGAN = Date.UTC(2026, 0, 1, 10);
    const at = (second: number) => new Date(BEGAN + second * 1000).toISOString();
    const online = (id: string, started: number, sent: number) => ({
      ...{
        name: 'stream_online',
        raw: { id, started_at: at(started) },
        occurred_at: at(started),
        reported_at: at(sent),
      },
      external_id: `twitch:state:stream.online:${id}`,
    });
    const offline = (sent: number) => ({
      ...{ name: 'stream_offline', raw: {}, occurred_at: at(sent), reported_at: at(sent), external_id: uuid() },
    });
    const transitions = (
      account_id: string,
      records: readonly ReturnType<typeof online | typeof offline>[],
      platform = 'twitch',
    ) =>
      said(
        ...records.map(({ name, raw, occurred_at, ...source }) => ({
          ...turn(account_id, `${platform}:${name}`, raw, occurred_at),
          ...source,
        })),
      );
    const onAir = async (account_id: string) =>
      (
        await t.db.query('select broadcast_id from channel_status where account_id = $1 and is_online', [account_id])
      ).map(({ broadcast_id }) => broadcast_id);
    const endOf = async (account_id: string, broadcast_id: string) => {
      const rows = await t.db.query<{ ended_at: string }>(
        'select ended_at from channel_status where account_id = $1 and broadcast_id = $2 and not is_online',
        [account_id, broadcast_id],
      );
      return rows.map(({ ended_at }) => new Date(ended_at).toISOString())[0];
    };
    const [ON, OFF] = ['channel:online', 'channel:offline'];

    test.each([
      ['an end that was sent before the begin', [offline(161), online('s', 0, 162)], [ON]],
      ['an end that was sent after the begin', [offline(161), online('s', 0, 2)], []],
      ['a begin that is sent again after an end', [online('s', 0, 2), offline(60), online('s', 0, 62)], [ON, OFF, ON]],
      ['a late end from before the begin', [online('s', 0, 162), offline(161), online('s', 0, 163)], [ON]],
      [
        'a begin after an end, and its own end',
        [offline(161), online('s', 0, 162), online('s', 0, 163), offline(500), online('s', 0, 163)],
        [ON, OFF],
      ],
    ])('%s', async (_what, records, expected) => {
      expect(await transitions(uuid(), records)).toEqual(expected);
    });

    test.each([
      ['twitch', [online('a', 0, 2), offline(30), offline(32), online('b', 31, 33)], ['b']],
      ['kick', [online('a', 0, 2), online('b', 10, 12), { ...offline(20), raw: { id: 'b' } }, offline(5)], []],
    ])('the state of %s is the same in every order', async (platform, records, expected) => {
      const orders = records.flatMap((first) =>
        records.flatMap((second) => {
          const [third, fourth] = records.filter((one) => one !== first && one !== second);
          return first === second
            ? []
            : [
                [first, second, third!, fourth!],
                [first, second, fourth!, third!],
              ];
        }),
      );
      expect(new Set(orders.map((order) => JSON.stringify(order))).size).toBe(24);
      for (const order of orders) {
        const account_id = uuid();
        await transitions(account_id, order, platform);
        expect(await onAir(account_id)).toEqual(expected);
      }
    });

    test('a reported end without a broadcast dates the end that looks have inferred', async () => {
      const account_id = uuid();
      const look = { occurred_at: at(100), raw: { id: 's' }, reported_at: undefined };
      const unseen = { ...offline(100), ...look, seen_at: at(120) };
      const seen = { ...online('s', 0, 2), reported_at: undefined, seen_at: at(400) };
      const records = [online('s', 0, 2), unseen, offline(300), seen];
      expect(await transitions(account_id, records as never)).toEqual([ON, OFF]);
      expect(await endOf(account_id, 's')).toBe(at(300));
    });

    test('a reported end dates the end that looks have inferred later', async () => {
      const account_id = uuid();
      const look = { occurred_at: at(100), raw: { id: 's' }, reported_at: undefined };
      const unseen = { ...offline(100), ...look, seen_at: at(120) };
      await transitions(account_id, [online('s', 0, 2), unseen, offline(90)] as never);
      expect(await endOf(account_id, 's')).toBe(at(90));
    });

    test('a begin that arrives after a look at the next broadcast is over, until a later look shows it', async () => {
      const account_id = uuid();
      const seen = (id: string, started: number, second: number) =>
        ({ ...online(id, started, 0), reported_at: undefined, seen_at: at(second) }) as never;
      expect(await transitions(account_id, [seen('b', 60, 70), online('a', 0, 2)], 'kick')).toEqual([ON]);
      expect(await onAir(account_id)).toEqual(['b']);
      expect(await endOf(account_id, 'a')).toBe(at(60));
      const ended = { ...offline(80), raw: { id: 'b' }, reported_at: undefined, seen_at: at(90) };
      expect(await transitions(account_id, [ended as never, seen('a', 0, 100)], 'kick')).toEqual([OFF, ON]);
      expect(await onAir(account_id)).toEqual(['a']);
    });

    test('a begin that arrives after its end has the time of that end', async () => {
      const account_id = uuid();
      await transitions(account_id, [offline(160), online('s', 0, 2)]);
      expect(await endOf(account_id, 's')).toBe(at(160));
      await transitions(account_id, [online('t', 170, 172), offline(300), online('s-2', 162, 163)]);
      expect(await endOf(account_id, 's-2')).toBe(at(170));
    });

    test('an end that names a broadcast ends this one alone', async () => {
      const account_id = uuid();
      const end = { ...offline(20), raw: { id: 'a' } };
      expect(await transitions(account_id, [online('b', 10, 11), end], 'kick')).toEqual([ON]);
      expect(await onAir(account_id)).toEqual(['b']);
      expect(await transitions(account_id, [online('a', 0, 30)], 'kick')).toEqual([]);
    });

    test('records of earlier releases make the same rows as before', async () => {
      const account_id = uuid();
      const of = (name: string, raw: object, second: number) => ({
        ...{ name, raw, occurred_at: at(second), external_id: uuid(), reported_at: undefined },
      });
      const begun = (id: string, second: number) => of('stream_online', { id }, second);
      const ended = (raw: object, second: number) => of('stream_offline', raw, second);
      const records = [
        ...[begun('a', 0), ended({ id: 'x' }, 5), begun('b', 10), begun('c', 8), ended({}, 20), begun('d', 15)],
        ...[ended({ id: 'e' }, 30), begun('e', 25), begun('e', 26), ended({ id: 'e' }, 28), begun('f', 40)],
      ];
      expect(await transitions(account_id, records as never)).toEqual([ON, OFF, ON, ON, OFF, OFF, ON]);
      const rows = await t.db.query(
        `select broadcast_id as id, is_online, started_at::text as began, ended_at::text as ended, reported_at, known_by
         from channel_status where account_id = $1 order by broadcast_id`,
        [account_id],
      );
      expect(rows.map(({ id, is_online, reported_at, known_by }) => [id, is_online, reported_at, known_by])).toEqual(
        ['', 'a', 'b', 'c', 'd', 'e', 'f', 'x'].map((id) => [id, id === 'f', null, 'report']),
      );
      const seconds = (time: unknown) => (time === null ? null : (Date.parse(String(time)) - BEGAN) / 1000);
      expect(rows.map(({ id, began, ended: over }) => [id, seconds(began), seconds(over)])).toEqual([
        ...[['', null, 20], ['a', 0, 5], ['b', 10, 20], ['c', 8, 20], ['d', 15, null]], // prettier-ignore
        ...[['e', 25, 30], ['f', 40, null], ['x', null, 5]], // prettier-ignore
      ]);
    });
  });
});
