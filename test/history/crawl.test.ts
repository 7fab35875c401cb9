import { v7 as uuid } from 'uuid';
import type { Platform } from '../../domain/common/vendors';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createPersonalTexts } from '../../privacy/subject-keys/texts';
import { crawledChannelsEraser } from '../../privacy/erasure/crawled-channels';
import { channelOfHandle, writeHandle } from '../../services/history/channel-handles';
import { crawlChannels, type CrawlParts } from '../../services/history/crawl';
import { sweepCrawled } from '../../services/history/crawled-rows';
import { createHttpClients } from '../../vendors/http/client';
import { kickCrawl } from '../../vendors/kick/crawl';
import { trovoCrawl } from '../../vendors/trovo/crawl';
import { type CrawlQuota, youtubeCrawl } from '../../vendors/youtube/crawl';
import { twitchCrawl } from '../../vendors/twitch/crawl';
import { crawledChannelOf, crawledStreamOf, profileChangesOf } from '../../views/history/crawled-channels';
import { isClosedByOperator, publicChannelOf } from '../../views/history/public-stats';
import { browsedChannels, gamesOf } from '../../views/history/public-directories';
import { type TestDatabase, testDatabase } from '../support/database';
import { engines, type Engines } from '../support/projections';
import { FakeKick } from '../vendors/kick-cloud';
import { FakeTrovo, TROVO_CLIENT } from '../vendors/trovo-cloud';
import { FakeTwitch, TWITCH_CLIENT, TWITCH_SECRET } from '../vendors/twitch-cloud';
import { FakeYoutube, YOUTUBE_KEY } from '../vendors/youtube-cloud';

const http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
let t: TestDatabase;
let on: Engines;
let parts: CrawlParts;
let [twitch, kick, trovo] = [new FakeTwitch(), new FakeKick(), new FakeTrovo()];
beforeAll(async () => {
  t = await testDatabase(10);
  on = await engines(t.db);
  [twitch, kick, trovo] = [new FakeTwitch(), new FakeKick(), new FakeTrovo()];
  await Promise.all([twitch.start(), kick.start(), trovo.start()]);
  const at = ({ base_url }: { base_url: string }) => ({ api_url: base_url, id_url: base_url });
  parts = {
    ...{ db: t.db, texts: createPersonalTexts(on.subject_keys), hashes: on.subject_keys },
    crawls: {
      twitch: twitchCrawl(http, at(twitch)),
      kick: kickCrawl(http, at(kick)),
      trovo: trovoCrawl(http, at(trovo)),
    },
    app: async (platform) =>
      platform === 'trovo'
        ? { client_id: TROVO_CLIENT, client_secret: '' }
        : { client_id: TWITCH_CLIENT, client_secret: TWITCH_SECRET },
  };
});
afterAll(async () => {
  await Promise.all([twitch.close(), kick.close(), trovo.close()]);
  await http.close();
  await on.close();
  await t.drop();
});

const crawl = () => crawlChannels(parts, new AbortController().signal);
const watch = (platform: Platform, channel: string) =>
  t.db.query('insert into crawler_watchlist (id, platform, channel, added_at) values ($1, $2, $3, now())', [
    ...[uuid(), platform, channel],
  ]);
const scope = (enabled: boolean, platforms: Platform[]) =>
  t.db.query(
    `insert into crawler_scope (crawler_id, enabled, platforms) values ('crawler', $1, $2)
     on conflict (crawler_id) do update set enabled = excluded.enabled, platforms = excluded.platforms`,
    [enabled, platforms],
  );
const pageOf = (platform: Platform, platform_channel_id: string) =>
  crawledChannelOf(t.db, { platform, platform_channel_id });

test('watched channels are read on the platforms of the scope alone, by the vendors of Twitch, Kick and Trovo', async () => {
  twitch.channel('7').stream = {
    ...{ id: 'tw-9', user_id: '7', title: 'Hello', game_name: 'Chess', viewer_count: 30 },
    started_at: new Date(Date.now() - 60_000).toISOString(),
  };
  kick.goLive(kick.channel(8, { slug: 'kicker' }), 12);
  trovo.goLive(trovo.channel('9', { username: 'trover' }), 5);
  await watch('twitch', 'login_7');
  await watch('kick', 'kicker');
  await watch('trovo', 'trover');
  await watch('twitch', 'nobody');
  expect(await crawl()).toBe(0);
  await scope(true, ['twitch']);
  expect(await crawl()).toBe(1);
  expect(kick.asked('/public/v1/channels')).toBe(0);
  await scope(true, ['twitch', 'kick', 'trovo']);
  await crawl();
  expect(await pageOf('twitch', '7')).toMatchObject({
    ...{ source: 'external_crawler', broadcaster_type: 'affiliate', stream_count: 1, peak_viewers: 30 },
    recent_streams: [{ broadcast_id: 'tw-9', title: 'Hello', category: 'Chess', ended_at: null }],
  });
  expect(await pageOf('kick', '8')).toMatchObject({ peak_viewers: 12 });
  expect(await pageOf('trovo', '9')).toMatchObject({ peak_viewers: 5 });
  expect(await channelOfHandle(parts, 'trovo', '@Trover')).toBe('9');
  expect(await crawledStreamOf(t.db, 'twitch', 'tw-9')).toMatchObject({ viewer_curve: [{ viewer_count: 30 }] });
  const { items } = await browsedChannels(
    t.db,
    { platform: null, sort_by: 'peak_viewers', sort_dir: 'desc' },
    { limit: 10, offset: 0 },
  );
  expect(items.map(({ platform, is_live }) => [platform, is_live])).toEqual([
    ...[
      ['twitch', true],
      ['kick', true],
      ['trovo', true],
    ],
  ]);
});

test('an end is found, and a changed profile is a change of it', async () => {
  Object.assign(twitch.channel('7'), { stream: null, description: 'New words' });
  await crawl();
  const page = await pageOf('twitch', '7');
  expect(page!.recent_streams[0]!.ended_at).not.toBeNull();
  const changes = await profileChangesOf(
    t.db,
    { platform: 'twitch', platform_channel_id: '7' },
    { limit: 5, offset: 0 },
  );
  expect(changes).toMatchObject({ total: 1, items: [{ change_type: 'bio', old_value: '', new_value: 'New words' }] });
});

test('a handle that Twitch refuses, or a revoked token, delays no other channel', async () => {
  await watch('twitch', 'no such name!');
  await t.db.query('delete from crawler_reads');
  expect(await crawl()).toBe(3);
  twitch.tokens.revokeAll(null);
  expect(await crawl()).toBe(3);
});

test('the broadcast of a channel that its platform does not know any more has ended', async () => {
  twitch.channel('70').stream = {
    ...{ id: 'tw-70', user_id: '70', title: 'Hello', game_name: 'Chess', viewer_count: 30 },
    started_at: new Date(Date.now() - 60_000).toISOString(),
  };
  await watch('twitch', 'login_70');
  await crawl();
  expect((await pageOf('twitch', '70'))!.recent_streams[0]!.ended_at).toBeNull();
  twitch.channels.delete('70');
  await crawl();
  expect((await pageOf('twitch', '70'))!.recent_streams[0]!.ended_at).not.toBeNull();
});

test('removal and opt-outs close the page, a connection replaces it', async () => {
  const optOut = (channel: string) =>
    t.db.query(`insert into crawler_opt_outs (platform, channel, opted_out_at) values ('kick', $1, now())`, [channel]);
  await optOut('8');
  expect(await pageOf('kick', '8')).toBeUndefined();
  const asked = kick.asked('/public/v1/channels');
  await crawl();
  expect(kick.asked('/public/v1/channels')).toBe(asked);
  await t.db.query('delete from crawler_opt_outs');
  expect(await pageOf('kick', '8')).toBeDefined();
  await t.db.query(`delete from crawler_watchlist where platform = 'kick'`);
  expect(await pageOf('kick', '8')).toBeUndefined();
  await t.db.query(
    `insert into channel_connections (id, account_id, platform, platform_channel_id, bot_enabled, connected_at)
     values ($1, $1, 'trovo', '9', true, now())`,
    [uuid()],
  );
  expect(await pageOf('trovo', '9')).toBeUndefined();
  expect(await publicChannelOf(t.db, { platform: 'trovo', platform_channel_id: '9' })).toBeUndefined();
});

test('profiles of connected channels are read, watched or not, on the platforms of the scope', async () => {
  const changes = async (platform: Platform, platform_channel_id: string) =>
    (await profileChangesOf(t.db, { platform, platform_channel_id }, { limit: 5, offset: 0 })).items;
  twitch.channel('50').description = 'Before';
  kick.channel(51, { slug: 'connected', description: 'Before' });
  trovo.channel('52', { username: 'connected' });
  for (const [platform, id] of [
    ['twitch', '50'],
    ['kick', '51'],
    ['trovo', '52'],
  ])
    await t.db.query(
      `insert into channel_connections (id, account_id, platform, platform_channel_id, bot_enabled, connected_at)
       values ($1, $1, $2, $3, true, now())`,
      [uuid(), platform, id],
    );
  await crawl();
  expect(await changes('twitch', '50')).toEqual([]);
  twitch.channel('50').description = 'After';
  kick.channel(51).description = 'After';
  const asked = kick.asked('/public/v1/channels');
  await crawl();
  // The next look at a profile is an hour later.
  expect(kick.asked('/public/v1/channels')).toBe(asked);
  await t.db.query(`update crawler_reads set read_at = read_at - interval '2 hours'`);
  await crawl();
  const after = [{ change_type: 'bio', old_value: 'Before', new_value: 'After' }];
  expect(await changes('twitch', '50')).toMatchObject(after);
  expect(await changes('kick', '51')).toMatchObject(after);
  expect(await changes('trovo', '52')).toEqual([]);
  expect(await t.db.query(`select channel from crawled_channels where platform_channel_id = '50'`)).toEqual([
    { channel: '' },
  ]);
  await t.db.query(`delete from channel_connections where platform_channel_id in ('50', '51', '52')`);
});

describe('youtube', () => {
  const youtube = new FakeYoutube();
  let has_spare = true;
  let spent = 0;
  const exhausted: string[] = [];
  const quota: CrawlQuota = {
    spare: async (_client_id, units) => {
      spent += has_spare ? units : 0;
      return has_spare;
    },
    exhausted: async (client_id) => void exhausted.push(client_id),
  };
  const reading = () => {
    const crawls = { youtube: youtubeCrawl(http, { api_url: youtube.base_url, api_key: YOUTUBE_KEY }, quota) };
    const app = async () => ({ client_id: 'google', client_secret: '' });
    return crawlChannels({ ...parts, crawls, app }, new AbortController().signal);
  };
  beforeAll(() => youtube.start());
  afterAll(() => youtube.close());

  test('is read by handles without a search, for units that connected channels leave', async () => {
    youtube.handles.set('@tuber', 'UCtuber').set('@quiet', 'UCquiet');
    youtube.goOffline(youtube.goLive('UCtuber', { title: 'Yesterday' }));
    const live = youtube.goLive('UCtuber', { title: 'Now', viewers: 40 });
    for (const handle of ['tuber', 'quiet', 'nobody']) await watch('youtube', handle);
    await scope(true, ['youtube']);
    has_spare = false;
    expect(await reading()).toBe(0);
    expect(youtube.used).toBe(0);
    has_spare = true;
    expect(await reading()).toBe(2);
    expect([youtube.used, spent]).toEqual([3 + 2 + 1, 3 * 2 + 1]);
    expect(await pageOf('youtube', 'UCtuber')).toMatchObject({
      ...{ peak_viewers: 40, stream_count: 1 },
      recent_streams: [{ broadcast_id: live.video_id, title: 'Now', ended_at: null }],
    });
    expect(await channelOfHandle(parts, 'youtube', '@Tuber')).toBe('UCtuber');
    youtube.goOffline(live);
    youtube.descriptions.set('UCtuber', 'New words');
    await reading();
    expect((await pageOf('youtube', 'UCtuber'))!.recent_streams[0]!.ended_at).not.toBeNull();
    const of = { platform: 'youtube', platform_channel_id: 'UCtuber' } as const;
    const { items } = await profileChangesOf(t.db, of, { limit: 5, offset: 0 });
    expect(items).toMatchObject([{ change_type: 'bio', old_value: '', new_value: 'New words' }]);
    youtube.quota = 0;
    expect(await reading()).toBe(0);
    expect(exhausted).toEqual(['google']);
    await scope(true, ['twitch', 'kick', 'trovo']);
  });
});

test('an opt-out by its handle closes a channel that connects later', async () => {
  await t.db.query(`insert into crawler_opt_outs (platform, channel, opted_out_at) values ('kick', 'later', now())`);
  await writeHandle(parts, { platform: 'kick', platform_channel_id: '77' }, '@Later');
  expect(await isClosedByOperator(t.db, { platform: 'kick', platform_channel_id: '77' })).toBe(true);
  expect(await isClosedByOperator(t.db, { platform: 'kick', platform_channel_id: '78' })).toBe(false);
});

test('games count crawled streams for their newest category', async () => {
  const directory = { platform: 'twitch', sort_by: 'peak_viewers', sort_dir: 'desc' } as const;
  const { items } = await gamesOf(t.db, directory, { limit: 10, offset: 0 });
  expect(items).toEqual([
    { category: 'Chess', hours_watched: expect.any(Number), peak_viewers: 30, stream_count: 2, channel_count: 2 },
  ]);
  expect((await gamesOf(t.db, { ...directory, platform: 'kick' }, { limit: 10, offset: 0 })).items).toEqual([]);
});

test('a broadcast is live no longer once its channel is read no more', async () => {
  const live = async () =>
    (await t.db.query<{ platform: string }>('select platform from crawled_streams where ended_at is null')).map(
      ({ platform }) => platform,
    );
  twitch.channel('7').stream = {
    ...{ id: 'tw-10', user_id: '7', title: 'Again', game_name: 'Chess', viewer_count: 3 },
    started_at: new Date(Date.now() - 60_000).toISOString(),
  };
  await scope(true, ['twitch']);
  await crawl();
  expect(await live()).toEqual(['twitch']);
  await scope(false, ['twitch']);
  await crawl();
  expect(await live()).toEqual([]);
  await scope(true, ['twitch']);
  await t.db.query('delete from crawled_samples');
  await crawl();
  expect(await live()).toEqual(['twitch']);
  await t.db.query(`delete from crawler_watchlist where channel = 'login_7'`);
  await crawl();
  expect(await live()).toEqual([]);
  await watch('twitch', 'login_7');
});

test('samples are thinned out and expire, and channels that nobody watches are deleted', async () => {
  const sample = (days: number, minute: number) =>
    t.db.query(
      `insert into crawled_samples (platform, platform_channel_id, broadcast_id, sampled_at, viewer_count)
       values ('twitch', '7', 'old', date_trunc('hour', now()) - $1 * interval '1 day' + $2 * interval '1 minute', 1)`,
      [days, minute],
    );
  for (const [days, minute] of [
    ...[
      [400, 0],
      [40, 1],
      [40, 2],
      [40, 59],
      [40, 60],
      [20, 1],
      [20, 2],
    ],
  ] as const)
    await sample(days, minute);
  await t.db.query(
    `insert into crawled_channels (platform, platform_channel_id, channel, read_at)
     values ('kick', '80', 'unwatched', now() - interval '31 days')`,
  );
  await sweepCrawled(t.db);
  const kept = await t.db.query<{ minute: number }>(
    `select extract(minute from sampled_at)::int as minute
     from crawled_samples where broadcast_id = 'old' order by sampled_at`,
  );
  expect(kept.map(({ minute }) => minute)).toEqual([1, 0, 1, 2]);
  expect(await t.db.query(`select 1 as one from crawled_channels where platform_channel_id in ('80', '7')`)).toEqual([
    { one: 1 },
  ]);
});

test('an erased person leaves no crawled row, and is not read again', async () => {
  const person = { subject: 'twitch:7', kind: 'twitch', id: '7' };
  const services = { db: t.db, subject_keys: on.subject_keys } as never;
  expect(await pageOf('twitch', '7')).toBeDefined();
  expect(await crawledChannelsEraser.names(person, services)).toBe(true);
  await crawledChannelsEraser.erase(person, services);
  expect(await pageOf('twitch', '7')).toBeUndefined();
  expect(await crawledStreamOf(t.db, 'twitch', 'tw-10')).toBeUndefined();
  await t.db.query('delete from crawler_reads');
  await crawl();
  expect(await pageOf('twitch', '7')).toBeUndefined();
  expect(await crawledChannelsEraser.names(person, services)).toBe(false);
});
