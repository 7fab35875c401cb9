import { unzipSync } from 'fflate';
import { v7 as uuid } from 'uuid';
import { TOPICS, type RecordEnvelope } from '../../domain/common/records';
import { correctResumed } from '../../services/history/session-corrections';
import { countSession } from '../../services/history/session-figures';
import type { Database } from '../../engines/postgres/port';
import { auditRows, sessionRows } from '../../maintenance/archive/files/read-model-rows';
import { sweepChat } from '../../maintenance/retention/chat';
import { sweepKeptCounts } from '../../maintenance/retention/kept-counts';
import { chatLiveEraser } from '../../privacy/erasure/chat';
import { eventLogEraser } from '../../privacy/erasure/events';
import { replayTopic } from '../../maintenance/archive/replay';
import { engines, type Engines } from '../support/projections';
import { chatRecord, message } from '../support/chat-records';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';

const MASTER_KEY = `test:${Buffer.alloc(32, 7).toString('base64')}`;
/** Two hours ago, at a whole minute. */
const BEGAN = Math.floor((Date.now() - 7_200_000) / 60_000) * 60_000;
const at = (minutes: number, seconds = 0) => new Date(BEGAN + minutes * 60_000 + seconds * 1000).toISOString();

let server: TestServer;
let on: Engines;
let owner: ApiClient;
let stranger: ApiClient;
let account_id: string;
/** The account's own channels. */
let kick: string;
let twitch: string;
beforeAll(async () => {
  server = await startServer({
    env: {
      LUMIO_SECRETS__KEYS: MASTER_KEY,
      LUMIO_HISTORY__SESSION_GRACE: '2m',
      LUMIO_HISTORY__COUNT_EVERY: '1s',
      LUMIO_HISTORY__BOTS: 'kick:8,kick:9',
    },
  });
  on = await engines(server.database!.db as never);
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
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

const counted = async () => {
  const [row] = await server.database!.db.query<{ rows: number }>(
    'select count(*)::int as rows from platform_chat_messages where account_id = $1',
    [account_id],
  );
  return row!;
};

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
    said('8', 'configured bot', 31, 0, { platform: 'kick' }),
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
    record('twitch:raid', at(38), {
      ...{ viewers: 40, from_broadcaster_user_id: '1234', from_broadcaster_user_name: 'Cool_User' },
    }),
    record('twitch:raid', at(91), { viewers: 400 }),
    kickTurn(false, at(0), at(60), '=Boss fight'),
    kickTurn(true, at(61), null, '=Boss fight'),
    kickTurn(false, at(61), at(70), '=Boss fight'),
    record('twitch:stream_offline', at(90), { broadcaster_user_id: twitch }),
    kickTurn(true, at(115), null, 'Still here'),
  );
  // Turns that the account makes up: of its own channel, of one that it does not have, and of no platform.
  for (const [event_type, raw] of [
    ['twitch:stream_online', { id: 'own', broadcaster_user_id: twitch, started_at: at(-60) }],
    ['twitch:stream_online', { id: 'forged', broadcaster_user_id: '424242', started_at: at(0) }],
    ['myspace:stream_online', { id: 'poison', broadcaster_user_id: '1', started_at: at(0) }],
  ] as const)
    expect((await owner.send('POST', '/v1/events/emit', { event_type, raw, created_at: raw.started_at })).status).toBe(
      200,
    );
  const emitted = { event_type: 'kick:follower', raw: {}, created_at: at(7) };
  expect((await owner.send('POST', '/v1/events/emit', emitted)).status).toBe(200);
}

interface Session {
  id: string;
  status: string;
  [figure: string]: unknown;
}
const list = async (query = '') => (await owner.get(`/v1/history${query}`)).body.data as Session[];
const finished = () =>
  eventually(async () => {
    const sessions = await list();
    return sessions.length === 2 && sessions.some(({ status }) => status === 'finalized')
      ? sessions.find(({ status }) => status === 'finalized')!
      : undefined;
  }, 'the finished session');
const living = () => eventually(async () => (await list()).find(({ status }) => status === 'live'), 'the live session');

describe('a session', () => {
  test('has the figures of all its streams; drops within the grace are bridged', async () => {
    expect(await finished()).toMatchObject({
      session_type: 'multi',
      title: '=Boss fight',
      platforms: ['kick', 'twitch'],
      categories: ['Chess', 'Go'],
      started_at: at(0),
      ended_at: at(90),
      duration_secs: 90 * 60,
      peak_viewers: 160,
      total_messages: 5,
      unique_chatters: 3,
      new_followers: 1,
      new_paid_subs: 1,
      gifted_subs: 54,
      emote_count: 2,
      gif_count: 1,
      followers_per_hour: 0.7,
    });
  });

  test('has a report with its streams, people, emotes and markers, the same on both protocols', async () => {
    const { id } = await finished();
    const { status, body } = await owner.get(`/v1/history/reports/${id}`);
    expect(status).toBe(200);
    const { data } = body;
    expect(data.streams.map((one: any) => [one.platform, one.total_messages, one.new_followers])).toEqual([
      ['kick', 4, 1],
      ['twitch', 1, 0],
    ]);
    expect(data.streams[0]).toMatchObject({
      broadcast_id: kickId(at(0)),
      started_at: at(0),
      ended_at: at(70),
      duration_secs: 70 * 60,
    });
    expect(data.streams.map((one: any) => one.shared_chat_sources)).toEqual([null, null]);
    expect(data.viewers_by_category).toEqual([
      { category: 'Chess', duration_secs: 5400, avg_viewers: 54 },
      { category: 'Go', duration_secs: 1800, avg_viewers: 100 },
    ]);
    // Twitch has 100 viewers in the minute before the raid and ten minutes after it.
    expect(data.raids).toEqual([
      {
        ...{ platform: 'twitch', raided_at: at(38), viewers: 40, retained_viewers: 0 },
        ...{ platform_user_id: '1234', display_name: 'Cool_User' },
      },
    ]);
    expect(Object.keys(data.streams[0])).toEqual([
      ...['platform', 'platform_channel_id', 'broadcast_id', 'title', 'category', 'started_at', 'ended_at'],
      ...['duration_secs', 'peak_viewers', 'avg_viewers', 'hours_watched', 'total_messages', 'unique_chatters'],
      ...['new_followers', 'new_paid_subs', 'gifted_subs', 'emote_count', 'gif_count', 'shared_chat_sources'],
    ]);
    expect(data.top_chatters.map((one: any) => [one.display_name, one.message_count])).toEqual([
      ['Name 1', 3],
      ...data.top_chatters.slice(1).map((one: any) => [one.display_name, 1]),
    ]);
    expect(data.top_emotes).toEqual([{ id: '25', url: 'https://e/25', provider: 'twitch', alt: 'Kappa', count: 2 }]);
    expect(data.top_gifs).toEqual([{ id: 'g1', alt: 'wave', url: 'https://g/1', provider: 'kick', count: 1 }]);
    expect(data.viewer_markers.total).toEqual({ first: 1, last: 100, peak: 160, peak_at: at(59) });
    expect(data.follower_markers.total).toMatchObject({ first: 1_030, last: 1_089, peak: 1_089, peak_at: at(89) });
    expect(data.comparison).toMatchObject({ sessions: 0, peak_viewers: null });
    const gql = await owner.gql(
      `{ channelHistoryReport(id: "${id}") { status peakViewers giftedSubs topChatters { messageCount } raids { retainedViewers } } }`,
    );
    expect(gql.data.channelHistoryReport).toMatchObject({ status: 'finalized', peakViewers: 160, giftedSubs: 54 });
  });

  test('is listed by every filter and sort, and its options are sorted', async () => {
    const { id } = await finished();
    const { id: live_id } = await living();
    const ids = async (query: string) => (await list(query)).map((one) => one.id);
    expect(await ids('')).toEqual([live_id, id]);
    expect(await ids('?sort_dir=asc')).toEqual([id, live_id]);
    // The live one has no samples: null sorts last either way.
    expect(await ids('?sort_by=peak_viewers')).toEqual([id, live_id]);
    expect(await ids('?sort_by=peak_viewers&sort_dir=asc')).toEqual([id, live_id]);
    expect(await ids('?session_type=multi')).toEqual([id]);
    expect(await ids('?session_type=single')).toEqual([live_id]);
    expect(await ids('?platform=twitch')).toEqual([id]);
    expect((await owner.get('/v1/history?platform=myspace')).body).toMatchObject({ message: 'Unsupported platform' });
    expect(await ids('?category=Go')).toEqual([id]);
    expect(await ids('?search=bOSS')).toEqual([id]);
    expect(await ids('?search=%25')).toEqual([]);
    expect(await ids(`?from=${at(1)}`)).toEqual([live_id]);
    expect(await ids(`?to=${at(1)}`)).toEqual([id]);
    expect(await ids('?per_page=1&page=2')).toEqual([id]);
    expect((await owner.get('/v1/history/filter-options')).body.data).toEqual({
      platforms: ['kick', 'twitch'],
      categories: ['Chess', 'Go'],
    });
    for (const query of ['?session_type=x', '?sort_by=x', `?from=${at(2)}&to=${at(1)}`, '?per_page=101']) {
      expect(await owner.get(`/v1/history${query}`)).toMatchObject({
        status: 400,
        body: { error: 'VALIDATION_ERROR' },
      });
    }
  });

  test('has samples in pages, of one platform or of all', async () => {
    const { id } = await finished();
    const all: any[] = [];
    let next = `/v1/history/reports/${id}/stats?limit=50`;
    for (let page = 0; page < 3; page += 1) {
      const { body } = await owner.get(next);
      all.push(...body.data);
      next = `/v1/history/reports/${id}/stats?limit=50&cursor=${body._meta.cursor ?? body._meta.next_cursor}`;
    }
    expect(all).toHaveLength(120);
    expect(all.map((one) => one.sampled_at)).toEqual(all.map((one) => one.sampled_at).sort());
    const { body } = await owner.get(`/v1/history/reports/${id}/stats?platform=twitch&limit=1`);
    expect(body.data).toEqual([{ platform: 'twitch', sampled_at: at(30), viewer_count: 100 }]);
    for (const query of ['limit=1441', 'platform=myspace'])
      expect((await owner.get(`/v1/history/reports/${id}/stats?${query}`)).status).toBe(400);
  });

  test('belongs to its account alone', async () => {
    const { id } = await finished();
    for (const path of ['', '/stats', '/export?format=json', '/shared-links'])
      expect((await stranger.get(`/v1/history/reports/${id}${path}`)).status).toBe(404);
    expect((await stranger.send('DELETE', `/v1/history/reports/${id}`, undefined)).status).toBe(404);
    const link = { duration_secs: 3600 };
    expect((await stranger.send('POST', `/v1/history/reports/${id}/shared-links`, link)).status).toBe(404);
  });

  test('of now is neither exported nor deleted', async () => {
    const { id } = await living();
    const conflict = (what: string) => ({
      status: 409,
      body: { error: 'CONFLICT', message: `A live stream cannot be ${what}` },
    });
    expect(await owner.get(`/v1/history/reports/${id}/export?format=csv`)).toMatchObject(conflict('exported'));
    expect(await owner.send('DELETE', `/v1/history/reports/${id}`, undefined)).toMatchObject(conflict('deleted'));
  });
});

test('sessions and the audit log are rows of an export, which continues behind any row', async () => {
  const { id } = await finished();
  const { db } = server.database!;
  const all = { account: account_id, from: null, to: null, types: [], after: null };
  const of = async (batches: AsyncIterable<Record<string, unknown>[]>) => {
    const rows: Record<string, unknown>[] = [];
    for await (const batch of batches) rows.push(...batch);
    return rows;
  };
  const sessions = await of(sessionRows(db, all));
  expect(sessions).toEqual([expect.objectContaining({ id, account_id, peak_viewers: 160, total_messages: 5 })]);
  expect(await of(sessionRows(db, { ...all, after: String(sessions[0]!['place']) }))).toEqual([]);
  expect(await of(sessionRows(db, { ...all, from: at(1) }))).toEqual([]);
  const entries = await of(auditRows(db, all));
  expect(entries.map(({ type }) => type)).toContain('account:created');
  const after = String(entries[0]!['place']);
  expect(await of(auditRows(db, { ...all, after }))).toEqual(entries.slice(1));
});

describe('files', () => {
  const file = async (format: string) => {
    const { id } = await finished();
    const path = `/v1/history/reports/${id}/export?format=${format}`;
    const answer = await fetch(server.base_url + path, {
      headers: { authorization: `Bearer ${server.credentials.access_token}` },
    });
    expect(answer.status).toBe(200);
    const extension = format === 'csv' ? 'zip' : format;
    expect(answer.headers.get('content-disposition')).toContain(
      `stream-report-${at(0).slice(0, 10)}-${id}.${extension}`,
    );
    return { type: answer.headers.get('content-type'), bytes: Buffer.from(await answer.arrayBuffer()) };
  };

  test('csv is a ZIP of six files, without formulas', async () => {
    const { type, bytes } = await file('csv');
    expect(type).toBe('application/zip');
    const files = unzipSync(bytes);
    expect(Object.keys(files)).toEqual([
      ...['summary.csv', 'streams.csv', 'timeseries.csv', 'top_chatters.csv', 'top_emotes.csv', 'top_gifs.csv'],
    ]);
    const lines = (name: string) => Buffer.from(files[name]!).toString().trimEnd().split('\r\n');
    expect(lines('timeseries.csv')).toHaveLength(121);
    expect(lines('streams.csv')).toHaveLength(3);
    expect(lines('summary.csv')[1]).toContain(",'=Boss fight,");
    expect(lines('top_emotes.csv')).toEqual(['id,alt,provider,url,count', '25,Kappa,twitch,https://e/25,2']);
  });

  test('json has a version and the metrics of platforms', async () => {
    const { bytes } = await file('json');
    const read = JSON.parse(bytes.toString());
    expect(read).toMatchObject({ schema_version: 1, report: { id: expect.any(String), peak_viewers: 160 } });
    expect(read.platform_metrics).toHaveLength(2);
    expect(read.samples).toHaveLength(120);
  });

  test('pdf has text, charts and pages', async () => {
    const { type, bytes } = await file('pdf');
    expect(type).toBe('application/pdf');
    expect(bytes.subarray(0, 5).toString()).toBe('%PDF-');
    expect(bytes.length).toBeGreaterThan(5_000);
  });

  test('txt can be read', async () => {
    const { type, bytes } = await file('txt');
    expect(type).toContain('text/plain');
    expect(bytes.toString()).toContain('Peak viewers: 160');
  });
});

describe('shared links', () => {
  const PASSWORD = 'Пароль 合言葉';
  /** Header values are bytes; fetch takes them as Latin-1. */
  const IN_HEADER = Buffer.from(PASSWORD).toString('latin1');
  const links = async () =>
    (await owner.get(`/v1/history/reports/${(await finished()).id}/shared-links`)).body.data as any[];
  const link = async (body: object, id?: string) =>
    owner.send('POST', `/v1/history/reports/${id ?? (await finished()).id}/shared-links`, body);
  const shared = (token: string, password?: string) =>
    fetch(`${server.base_url}/v1/history/shared/${token}`, {
      headers: password === undefined ? {} : { 'x-share-password': password },
    }).then(async (answer) => ({ status: answer.status, body: (await answer.json()) as any }));

  test('open the report with samples; nothing lists their secrets', async () => {
    const made = await link({ duration_secs: 3600, allow_export: true });
    expect(made).toMatchObject({
      status: 201,
      body: { data: { has_password: false, allow_export: true } },
    });
    const { token, url, id, ...shown } = made.body.data;
    expect(url).toBe(`/v1/history/shared/${token}`);
    expect(Object.keys(shown)).toEqual(['expires_at', 'allow_export', 'has_password', 'created_at']);
    const { status, body } = await shared(token);
    expect(status).toBe(200);
    expect(body.data.report.peak_viewers).toBe(160);
    expect(body.data.samples).toHaveLength(120);
    expect(body.data.allow_export).toBe(true);
    const exported = await fetch(`${server.base_url}/v1/history/shared/${token}/export?format=json`);
    expect(exported.status).toBe(200);
    const { id: report_id } = await finished();
    const listed = await owner.get(`/v1/history/reports/${report_id}/shared-links`);
    expect(listed.body.data[0]).toEqual({ id, ...shown });
    expect(listed.text).not.toContain(token);
  });

  test('name the maker of the popout token that made them', async () => {
    const { user_id, other } = server.credentials;
    const roles = (await owner.get('/v1/roles')).body.data as { id: string; slug: string }[];
    const role_id = roles.find(({ slug }) => slug === 'viewer')!.id;
    const { code } = (await owner.send('POST', `/v1/accounts/${account_id}/invites`, { role_id })).body.data;
    expect((await stranger.send('POST', `/v1/invites/${code}/accept`, {})).status).toBeLessThan(300);
    const wanted = { permissions: ['history:share'], user_id: other.user_id };
    const { token } = (await owner.send('POST', '/v1/tokens', wanted)).body.data;
    const path = `/v1/history/reports/${(await finished()).id}/shared-links`;
    const made = await new ApiClient(server.base_url, token).send('POST', path, { duration_secs: 3600 });
    expect(made.status).toBe(201);
    const [row] = await server.database!.db.query('select created_by from session_links where id = $1', [
      made.body.data.id,
    ]);
    expect(row?.created_by).toBe(user_id);
    const membership = `/v1/accounts/${account_id}/members/${other.user_id}`;
    expect((await owner.send('DELETE', membership, undefined)).status).toBe(204);
  });

  test('with a password; whatever is wrong is one answer', async () => {
    const { token, id } = (await link({ duration_secs: 3600, password: PASSWORD })).body.data;
    expect((await shared(token, IN_HEADER)).status).toBe(200);
    expect((await fetch(`${server.base_url}/v1/history/shared/${token}?password=open`)).status).toBe(400);
    const answers = [await shared(token), await shared(token, 'wrong'), await shared('unknown', IN_HEADER)];
    const no_export = await fetch(`${server.base_url}/v1/history/shared/${token}/export?format=json`, {
      headers: { 'x-share-password': IN_HEADER },
    });
    expect([no_export.status, ((await no_export.json()) as any).message]).toEqual([
      403,
      'This link does not allow export',
    ]);
    expect((await owner.send('DELETE', `/v1/history/shared-links/${id}`, undefined)).status).toBe(204);
    expect((await links()).map((one: any) => one.id)).not.toContain(id);
    answers.push(await shared(token, IN_HEADER));
    const [first] = answers;
    expect(first).toMatchObject({ status: 401, body: { message: 'Invalid link or password' } });
    for (const { status, body } of answers) {
      expect({ status, error: body.error, message: body.message }).toEqual({
        status: 401,
        error: first!.body.error,
        message: first!.body.message,
      });
    }
  });

  test('are extended by a duration, unless they have ended', async () => {
    const { id, expires_at } = (await link({ duration_secs: 3600 })).body.data;
    const extended = await owner.send('PATCH', `/v1/history/shared-links/${id}`, { duration_secs: 86_400 });
    expect(Date.parse(extended.body.data.expires_at)).toBe(Date.parse(expires_at) + 86_400_000);
    expect((await owner.send('PATCH', `/v1/history/shared-links/${id}`, { duration_secs: 5 })).status).toBe(400);
    await owner.send('DELETE', `/v1/history/shared-links/${id}`, undefined);
    expect(await owner.send('PATCH', `/v1/history/shared-links/${id}`, { duration_secs: 3600 })).toMatchObject({
      status: 409,
      body: { message: 'The link is not active' },
    });
    expect((await stranger.send('DELETE', `/v1/history/shared-links/${id}`, undefined)).status).toBe(404);
  });

  test('twenty are active at most, however many are asked for at once', async () => {
    const { id } = await living();
    const answers = await Promise.all(Array.from({ length: 22 }, () => link({ duration_secs: 3600 }, id)));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(20);
    expect(statuses.filter((status) => status === 409)).toHaveLength(2);
  });
});

test('a late message corrects a finished session; a deleted report is gone with its links, and does not come back', async () => {
  const { id } = await finished();
  const say = (text: string) => on.records.append(TOPICS.chat_events, [said('5', text, 1, 0, { platform: 'kick' })]);
  await say('late');
  await eventually(async () => {
    const { body } = await owner.get(`/v1/history?to=${at(1)}`);
    return body.data[0].total_messages === 6 ? true : undefined;
  }, 'the correction');
  const made = await owner.send('POST', `/v1/history/reports/${id}/shared-links`, { duration_secs: 3600 });
  const path = `/v1/history/shared/${made.body.data.token}`;
  expect((await fetch(server.base_url + path)).status).toBe(200);
  expect((await owner.send('DELETE', `/v1/history/reports/${id}`, undefined)).status).toBe(204);
  expect((await fetch(server.base_url + path)).status).toBe(401);
  expect((await owner.get(`/v1/history/reports/${id}`)).status).toBe(404);
  expect((await owner.send('DELETE', `/v1/history/reports/${id}`, undefined)).status).toBe(404);
  await say('after the deletion');
  await eventually(async () => {
    const { rows } = await counted();
    return rows === 12 ? true : undefined;
  }, 'the message');
  expect((await list()).map(({ status }) => status)).toEqual(['live']);
});

describe('a late broadcast', () => {
  const broadcast = async (from: number, to: number) => {
    await events(kickTurn(true, at(from), null, 'Marathon'), kickTurn(false, at(from), at(to), 'Marathon'));
  };
  const between = async (from: number, to: number) => list(`?from=${at(from)}&to=${at(to)}&sort_dir=asc`);
  const settled = (from: number, to: number, sessions: number) =>
    eventually(async () => {
      const found = await between(from, to);
      const is_over = found.every(({ status }) => status === 'finalized');
      return found.length === sessions && is_over ? found : undefined;
    }, `${sessions} finished sessions`);

  test('merges the sessions that it joins; the links of the younger stay and count', async () => {
    await broadcast(-300, -290);
    await broadcast(-285, -280);
    const [older, younger] = await settled(-301, -279, 2);
    const linkTo = (id: string) =>
      owner.send('POST', `/v1/history/reports/${id}/shared-links`, { duration_secs: 3600 });
    const { token, id: link_id } = (await linkTo(younger!.id)).body.data;
    await broadcast(-289, -286);
    await eventually(async () => {
      const [only, ...more] = await between(-301, -279);
      return more.length === 0 && only!.status === 'finalized' && only!['ended_at'] === at(-280) ? true : undefined;
    }, 'the merged session');
    const { data: report } = (await owner.get(`/v1/history/reports/${younger!.id}`)).body;
    expect(report).toMatchObject({ id: older!.id, duration_secs: 20 * 60, streams: [{ started_at: at(-300) }] });
    const shared = await fetch(`${server.base_url}/v1/history/shared/${token}`);
    expect(((await shared.json()) as any).data.report.id).toBe(older!.id);
    const extended = await owner.send('PATCH', `/v1/history/shared-links/${link_id}`, { duration_secs: 3600 });
    expect(extended.status).toBe(200);
    for (let made = 1; made < 20; made += 1) expect((await linkTo(younger!.id)).status).toBe(201);
    expect((await linkTo(older!.id)).status).toBe(409);
    const stored = await on.events.read(`stream-session-${older!.id}`);
    const types = stored.map(({ type }) => type).filter((type) => !type.includes('link'));
    expect(types).toEqual([
      ...['stream_session:begun', 'stream_session:finalized', 'stream_session:stream_added'],
      ...['stream_session:merged', 'stream_session:stream_added', 'stream_session:corrected'],
    ]);
  });

  test('or event corrects a session of any age, also after retention and an erasure have taken its rows', async () => {
    const { db } = server.database!;
    await broadcast(-500, -490);
    const [session] = await settled(-501, -489, 1);
    const emote = { type: 'emote', text: 'Kappa', id: '25', provider: 'twitch', url: 'https://e/25', animated: false };
    const say = (author: string, minute: number, more = {}) =>
      on.records.append(TOPICS.chat_events, [said(author, 'late', minute, 0, { platform: 'kick', ...more })]);
    const figures = (wanted: object) =>
      eventually(async () => {
        const [only] = await between(-501, -489);
        return Object.entries(wanted).every(([name, value]) => only![name] === value) || undefined;
      }, JSON.stringify(wanted));
    await db.query(`update stream_sessions set counted_at = now() - interval '3 days' where id = $1`, [session!.id]);
    await say('51', -495, { parts: [emote, emote] });
    await say('52', -494);
    await figures({ total_messages: 2, unique_chatters: 2, emote_count: 2 });
    const follower = record('kick:follower', at(-494), { follower: { user_id: 7 } });
    await events(follower);
    await figures({ new_followers: 1 });

    const retain = (days: number) =>
      db.query(
        `insert into account_limit_overrides (account_id, name, value, set_at)
         values ($1, 'chat_retention_days', $2, now())
         on conflict (account_id, name) do update set value = excluded.value`,
        [account_id, days],
      );
    const old = [account_id, at(-500), at(-490)];
    // As old as they would have to be; their times of the stream stay.
    await db.query(
      `update platform_chat_messages set place = place - 86400000000::bigint * 400
       where account_id = $1 and created_at between $2 and $3`,
      old,
    );
    await retain(300);
    expect(await sweepChat(db as never)).toBe(2);
    await db.transaction((tx) => eventLogEraser.erase(tx, [{ id: follower.id } as never]));
    await say('51', -493);
    await figures({ total_messages: 3, unique_chatters: 2, emote_count: 2, new_followers: 1 });
    await say('52', -492, { parts: [emote] });
    await figures({ total_messages: 4, emote_count: 3 });
    const written = await db.query<{ id: string; person_key: string }>(
      `select m.id, m.person_key from platform_chat_messages m join platform_users u using (account_id, person_key)
       where m.account_id = $1 and u.platform_user_id in ('51', '52') order by u.platform_user_id, m.created_at`,
      [account_id],
    );
    const erased = written.map(({ id, person_key }) => ({ ...{ id, account_id }, subject_key: person_key }));
    const own = { subject_erased: true } as const;
    await db.transaction((tx) => chatLiveEraser.erase(tx, erased.map((one) => ({ ...one, ...own })) as never));
    await say('53', -491, { parts: [emote] });
    await figures({ total_messages: 5, unique_chatters: 3, emote_count: 4 });
    await db.query('delete from account_limit_overrides where account_id = $1', [account_id]);
    const stored = await on.events.read(`stream-session-${session!.id}`);
    const corrections = stored.filter(({ type }) => type === 'stream_session:corrected');
    expect(corrections.length).toBeLessThanOrEqual(6);
    await eventually(
      async () => (await db.query('select 1 from late_spans')).length === 0 || undefined,
      'no late record to be left',
    );
  });

  test('joins no deleted session', async () => {
    await broadcast(-400, -390);
    await broadcast(-385, -380);
    const [deleted, other] = await settled(-401, -379, 2);
    expect((await owner.send('DELETE', `/v1/history/reports/${deleted!.id}`, undefined)).status).toBe(204);
    await broadcast(-389, -386);
    await eventually(async () => {
      const [only] = await settled(-401, -379, 1);
      return only!.id === other!.id && only!['started_at'] === at(-389) ? true : undefined;
    }, 'the broadcast in the other session');
    expect((await owner.get(`/v1/history/reports/${deleted!.id}`)).status).toBe(404);
  });
});

test('a replay has a message that was delivered twice once', async () => {
  const once = said('6', 'once', 2, 0, { platform: 'kick' });
  const before = (await counted()).rows;
  await on.records.append(TOPICS.chat_events, [once, { ...once, id: uuid() }]);
  await on.records.append(TOPICS.chat_events, [said('6', 'after', 2, 1, { platform: 'kick' })]);
  await eventually(async () => ((await counted()).rows === before + 2 ? true : undefined), 'both messages');
  const replayed: unknown[] = [];
  const { db } = server.database!;
  for await (const batch of replayTopic({ db, ...on } as never, { topic: TOPICS.chat_events, account_id }))
    for (const one of batch) if ('external_id' in one) replayed.push(one.external_id);
  expect(replayed.filter((id) => id === once.external_id)).toHaveLength(1);
});

test('a message that names an erased person stays in the counts of its chat', async () => {
  const db = server.database!.db as never as Database;
  const [account, begin, end] = [uuid(), at(-10), at(-5)];
  const say = (n: number, content: string | null, live_chat_id: string | null) =>
    db.query(
      `insert into platform_chat_messages (account_id, platform, place, id, created_at, message, content, live_chat_id,
         is_first, is_paid, has_link, has_emote, is_late)
       values ($1, 'youtube', $2, $3, $4, '', $5::text::json, $6, false, false, false,
         coalesce($5::text like '%"emote"%', false), false)`,
      [account, Date.parse(begin) * 1000 + n, uuid(), begin, content, live_chat_id],
    );
  await say(1, '{}', 'chat');
  await say(2, '{}', 'another chat');
  await say(3, null, null);
  const stream = {
    ...{ platform: 'youtube', platform_channel_id: 'c', broadcast_id: 'b', title: null, category: null },
    ...{ started_at: begin, ended_at: end, broadcast_ids: ['b'], live_chat_ids: ['chat'] },
  } as const;
  const figures = () => countSession(db, account, [stream as never], end, { ids: [], logins: [] });
  expect((await figures()).total_messages).toBe(2);

  const emote = { type: 'emote', id: '25', provider: 'twitch', text: 'Kappa', url: null };
  await say(4, JSON.stringify({ is_shared_chat: true, parts: [emote] }), 'chat');
  await say(5, JSON.stringify({ parts: [emote] }), 'chat');
  expect(await figures()).toMatchObject({ total_messages: 3, emote_count: 1 });
  const named = await db.query<{ id: string }>(
    'select id from platform_chat_messages where account_id = $1 and content is not null',
    [account],
  );
  await db.transaction((tx) => chatLiveEraser.erase(tx, named.map(({ id }) => ({ id, account_id: account })) as never));
  // The stream is live: it has no finished session. The emptied message of the other live chat counts as its own.
  expect(await figures()).toMatchObject({ total_messages: 4, emote_count: 0 });
});

test('a live session that is longer than the retention of chat loses no message', async () => {
  const db = server.database!.db as never as Database;
  const stream = {
    ...{ platform: 'kick', platform_channel_id: kick, broadcast_id: kickId(at(115)), title: null, category: null },
    ...{ started_at: at(115), ended_at: null, broadcast_ids: [kickId(at(115))], live_chat_ids: [] },
  };
  const figures = () => countSession(db, account_id, [stream as never], at(125), { ids: [], logins: [] });
  const say = (minute: number) =>
    on.records.append(TOPICS.chat_events, [said('61', 'on air', minute, 0, { platform: 'kick' })]);
  const messages = (wanted: number) =>
    eventually(async () => (await figures()).total_messages === wanted || undefined, `${wanted} messages`);
  await say(116);
  await messages(1);
  await db.query(
    `update platform_chat_messages set place = place - 86400000000::bigint * 400
     where account_id = $1 and created_at = $2`,
    [account_id, at(116)],
  );
  await db.query(
    `insert into account_limit_overrides (account_id, name, value, set_at)
     values ($1, 'chat_retention_days', 300, now())`,
    [account_id],
  );
  expect(await sweepChat(db)).toBe(1);
  await db.query('delete from account_limit_overrides where account_id = $1', [account_id]);
  await messages(1);
  await say(117);
  await messages(2);
  expect(await figures()).toMatchObject({ unique_chatters: 1, top_chatters: [{ message_count: 2 }] });
});

test('counts of deleted rows are deleted with the age from which no session is counted again', async () => {
  const db = server.database!.db as never as Database;
  const [account, other] = [uuid(), uuid()];
  const add = (of: string, days: number) =>
    db.query(
      `insert into chat_minute_counts (account_id, platform, since, live_chat_id, person_key, count)
       values ($1, 'kick', now() - $2 * interval '1 day', '', $1, 1)`,
      [of, days],
    );
  for (const days of [399, 402]) await add(account, days);
  await add(other, 402);
  await db.query(
    `insert into stream_sessions (id, account_id, started_at, is_live, titles, platforms, categories)
     values ($1, $2, now() - interval '403 days', true, '{}', '{}', '{}')`,
    [uuid(), other],
  );
  await sweepKeptCounts(db);
  const kept = await db.query('select account_id from chat_minute_counts where account_id = any($1)', [
    [account, other],
  ]);
  expect(kept.map(({ account_id: of }) => of).sort()).toEqual([account, other].sort());
  await db.query('delete from stream_sessions where account_id = $1', [other]);
});

test('a finished session whose broadcast resumes is corrected after its end', async () => {
  const { db } = server.database!;
  const begun = kickTurn(true, at(-600), null, 'Marathon');
  const ended = (minutes: number) => kickTurn(false, at(-600), at(minutes), 'Marathon');
  const parts = { db, events: on.events, grace_ms: 0, bots: { ids: [], logins: [] } } as never;
  const correct = () => correctResumed(parts, () => false);
  const statusIs = (is_online: boolean) =>
    eventually(
      async () => {
        const [row] = await db.query('select is_online from channel_status where broadcast_id = $1', [
          kickId(at(-600)),
        ]);
        return row?.['is_online'] === is_online || undefined;
      },
      `the broadcast to be ${is_online ? 'on air' : 'over'}`,
    );
  const session = async () => (await list()).find(({ started_at }) => started_at === at(-600));
  await events({ ...begun, seen_at: at(-599) }, { ...ended(-590), seen_at: at(-588) });
  await eventually(async () => (await session())?.status === 'finalized' || undefined, 'the session to be finished');
  expect(await session()).toMatchObject({ ended_at: at(-590), duration_secs: 600 });

  await events({ ...begun, id: uuid(), seen_at: at(-580) });
  await statusIs(true);
  await correct();
  expect(await session()).toMatchObject({ ended_at: at(-590) });
  await db.query(`update stream_sessions set counted_at = now() - interval '2 days' where started_at = $1`, [at(-600)]);
  await events({ ...ended(-560), reported_at: at(-560) });
  await statusIs(false);
  await correct();
  await eventually(async () => (await session())?.ended_at === at(-560) || undefined, 'the corrected session');
  expect(await session()).toMatchObject({ duration_secs: 2400 });
  const claims = await db.query('select session_id from session_claims where broadcast_id = $1', [kickId(at(-600))]);
  expect(claims).toHaveLength(1);
  const begins = (await list()).map(({ started_at }) => String(started_at));
  expect(begins.filter((begin) => begin >= at(-600) && begin < at(-530))).toEqual([at(-600)]);
});
