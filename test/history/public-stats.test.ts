import { v7 as uuid } from 'uuid';
import { TOPICS, type RecordEnvelope } from '../../domain/common/records';
import type { Database } from '../../engines/postgres/port';
import { chatLiveEraser } from '../../privacy/erasure/chat';
import { chatRecord, message } from '../support/chat-records';
import { Listener } from '../support/listener';
import { engines, type Engines } from '../support/projections';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { FakeOAuthCloud } from '../vendors/oauth-cloud';

const WEB = 'https://app.example';
const BEGAN = Math.floor((Date.now() - 7_200_000) / 60_000) * 60_000;
const at = (minutes: number) => new Date(BEGAN + minutes * 60_000).toISOString();
const HANDLE = 'login_7';

let cloud: FakeOAuthCloud;
let server: TestServer;
let on: Engines;
let owner: ApiClient;
let channel_id: string;
beforeAll(async () => {
  cloud = await new FakeOAuthCloud().start();
  server = await startServer({
    env: {
      ...cloud.env(),
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_SECRETS__KEYS: `test:${Buffer.alloc(32, 7).toString('base64')}`,
      LUMIO_HISTORY__SESSION_GRACE: '1s',
      LUMIO_HISTORY__COUNT_EVERY: '1s',
      LUMIO_TRUSTED_PROXIES: 'loopback',
    },
  });
  on = await engines(server.database!.db as never);
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  const { body } = await owner.get('/v1/connections/channel');
  channel_id = body.data.find((one: any) => one.platform === 'twitch').platform_channel_id;
  await streamed();
});
afterAll(async () => {
  await on?.close();
  await server?.dispose();
  await cloud?.close();
});

let calls = 0;
/** Somebody without credentials, each time from another network: one has few calls a minute. */
async function call(path: string, options: RequestInit = {}): Promise<{ status: number; body: any }> {
  calls += 1;
  const headers = { 'content-type': 'application/json', 'x-forwarded-for': `198.18.${calls >> 8}.${calls & 255}` };
  const answer = await fetch(server.base_url + path, { ...options, headers });
  return { status: answer.status, body: await answer.json() };
}
const nobody = {
  get: (path: string) => call(path),
  gql: async (query: string) => (await call('/v1/gql', { method: 'POST', body: JSON.stringify({ query }) })).body,
};

const record = (type: string, occurred_at: string, raw: object): RecordEnvelope => ({
  id: uuid(),
  account_id: server.credentials.account_id,
  type,
  platform: 'twitch',
  external_id: null,
  occurred_at,
  received_at: occurred_at,
  subject: null,
  raw: JSON.stringify(raw),
  trace: null,
});

async function streamed() {
  const sample = (minute: number, title: string, category: string) =>
    record('stream:sample', at(minute), {
      ...{ broadcast_id: 'b-1', viewer_count: minute + 10, follower_count: 100 + minute },
      ...{ title, category, tags: [] },
    });
  const emote = { type: 'emote', text: 'Kappa', id: '25', provider: 'twitch', url: null, animated: false } as const;
  await on.records.append(TOPICS.stream_samples, [
    ...Array.from({ length: 10 }, (_, minute) => sample(minute, 'One', 'Chess')),
    ...Array.from({ length: 10 }, (_, minute) => sample(minute + 10, 'Two', 'Go')),
  ]);
  await on.records.append(TOPICS.chat_events, [
    chatRecord(message('1', 'Kappa', { parts: [emote] }), { account_id: server.credentials.account_id, at: at(5) }),
  ]);
  const turn = (type: string, id: string, started_at: string, when = started_at) =>
    record(`twitch:${type}`, when, { id, broadcaster_user_id: channel_id, started_at });
  await on.records.append(TOPICS.platform_events, [
    turn('stream_online', 'b-1', at(0)),
    record('twitch:follower', at(3), { user_id: '1' }),
    turn('stream_offline', 'b-1', at(0), at(20)),
    turn('stream_online', 'b-2', at(110)),
  ]);
}

/** Makes the next count of the live session due, as the first one of a minute. */
const countAgain = () =>
  server.database!.db.query(
    `update live_session_figures set counted_at = counted_at - interval '2 minutes', next_at = now()`,
  );
const channel = (rest = '', handle = HANDLE) => nobody.get(`/v1/public-stats/channels/twitch/${handle}${rest}`);
const set = (body: object, platform = 'twitch') => owner.send('PUT', `/v1/public-stats/channels/${platform}`, body);

test('a channel without a known handle can neither be found nor changed', async () => {
  expect((await channel()).status).toBe(404);
  expect(await set({ is_public: false })).toMatchObject({ status: 422, body: { error: 'VALIDATION_ERROR' } });
  expect((await set({ is_public: false }, 'myspace')).status).toBe(422);
  const stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
  expect((await stranger.send('PUT', '/v1/public-stats/channels/twitch', { is_public: false })).status).toBe(404);
});

describe('a channel with a handle', () => {
  beforeAll(async () => {
    const begun = await owner.send('POST', '/v1/connections/oauth/twitch/start', { kind: 'channel', return_to: WEB });
    const { code, state } = cloud.login(begun.body.authorize_url, channel_id);
    expect((await owner.send('POST', '/v1/connections/oauth/twitch/exchange', { code, state })).status).toBe(200);
    // The session may be counted before its message is stored, and is corrected then.
    await eventually(
      async () => (await channel('', `login_${channel_id}`)).body.data?.total_messages === 1 || undefined,
      'the channel with its message',
    );
  });
  const handle = () => `login_${channel_id}`;

  test('shows its sums and streams, whatever the case of its handle', async () => {
    const { body } = await channel('', handle().toUpperCase());
    expect(body.data).toMatchObject({
      platform_channel_id: channel_id,
      source: 'first_party',
      // With the live one, which has no samples.
      stream_count: 2,
      peak_viewers: 29,
      avg_viewers: 20,
      total_messages: 1,
      broadcaster_type: null,
      recent_streams: [
        { broadcast_id: 'b-2', ended_at: null },
        { broadcast_id: 'b-1', title: 'Two', category: 'Go', ended_at: at(20), duration_secs: 1200 },
      ],
    });
    expect(Object.keys(body.data.recent_streams[1])).toEqual([
      ...['broadcast_id', 'title', 'category', 'started_at', 'ended_at', 'duration_secs', 'peak_viewers'],
      ...['avg_viewers', 'total_messages'],
    ]);
    const gql = await nobody.gql(
      `{ publicChannelStats(platform: "twitch", channel: "${handle()}") { streamCount source recentStreams { title } } }`,
    );
    expect(gql.data.publicChannelStats).toEqual({
      streamCount: 2,
      source: 'first_party',
      recentStreams: [{ title: null }, { title: 'Two' }],
    });
  });

  test('may be held for a minute, and is not sent again while it is the same; refusals are not held', async () => {
    const headers = { 'x-forwarded-for': '198.19.9.9' };
    const url = `${server.base_url}/v1/public-stats/channels/twitch/${handle()}`;
    const first = await fetch(url, { headers });
    expect(first.headers.get('cache-control')).toBe('public, max-age=60');
    const again = await fetch(url, { headers: { ...headers, 'if-none-match': first.headers.get('etag')! } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    const other = await fetch(url, { headers: { ...headers, 'if-none-match': '"x"' } });
    expect(other.status).toBe(200);
    const refused = await fetch(`${url}x`, { headers });
    expect([refused.status, refused.headers.get('cache-control')]).toEqual([404, 'no-store']);
  });

  test('shows trends by day; profile and panels are empty', async () => {
    const { body } = await channel('/trends?range=DAYS_30', handle());
    const date = at(0).slice(0, 10);
    expect(body.data).toEqual({
      follower_series: [{ date, follower_count: 119 }],
      avg_viewer_series: [{ date, avg_viewers: 20 }],
    });
    for (const query of ['', '?range=DAYS_7']) expect((await channel(`/trends${query}`, handle())).status).toBe(400);
    expect((await channel('/profile-history', handle())).body).toEqual({ items: [], total: 0 });
    expect((await channel('/panel-history', handle())).body.data).toEqual([]);
    expect((await channel('/profile-history?limit=201', handle())).status).toBe(400);
    for (const path of ['channels/myspace/x', 'streams/myspace/x', 'browse?platform=myspace'])
      expect(await nobody.get(`/v1/public-stats/${path}`)).toMatchObject({
        status: 400,
        body: { error: 'VALIDATION_ERROR', message: 'Unsupported platform' },
      });
  });

  test('shows a stream with its curve and changes, and its chatters once it wants to', async () => {
    const stream = () => nobody.get('/v1/public-stats/streams/twitch/b-1');
    const { body } = await stream();
    expect(body.data).toMatchObject({
      summary: { broadcast_id: 'b-1', ended_at: at(20), peak_viewers: 29, total_messages: 1 },
      emote_count: 1,
      top_emotes: [{ alt: 'Kappa', count: 1 }],
      new_followers: 1,
      top_chatters: null,
      shared_chat_sources: null,
    });
    expect(body.data.viewer_curve).toHaveLength(20);
    const changes = await nobody.get('/v1/public-stats/streams/twitch/b-1/metadata-history');
    expect(changes.body.items).toEqual([
      { change_type: 'category', old_value: 'Chess', new_value: 'Go', changed_at: at(10) },
      { change_type: 'title', old_value: 'One', new_value: 'Two', changed_at: at(10) },
    ]);
    expect((await nobody.get('/v1/public-stats/streams/twitch/unknown')).status).toBe(404);
    expect((await set({ show_top_chatters: true })).body.data).toMatchObject({
      is_public: true,
      show_top_chatters: true,
    });
    expect((await stream()).body.data.top_chatters).toEqual([{ display_name: 'Name 1', message_count: 1 }]);
  });

  test('an erased chatter is on no page, in no report and in no file; counts stay', async () => {
    const db = server.database!.db as never as Database;
    const [session] = await db.query<{ session_id: string }>(
      `select session_id from session_streams where broadcast_id = 'b-1'`,
    );
    const report = `/v1/history/reports/${session!.session_id}`;
    const file = async (format: string) => {
      const headers = { authorization: `Bearer ${server.credentials.access_token}` };
      const answer = await fetch(`${server.base_url}${report}/export?format=${format}`, { headers });
      expect(answer.status).toBe(200);
      return answer.text();
    };
    expect(await file('json')).toContain('Name 1');
    const written = await db.query<{ id: string; subject_key: string }>(
      `select m.id, m.person_key as subject_key from platform_chat_messages m
         join platform_users u using (account_id, person_key)
       where m.account_id = $1 and u.display_name = 'Name 1'`,
      [server.credentials.account_id],
    );
    const { account_id } = server.credentials;
    const records = written.map((one) => ({ ...one, account_id, subject_erased: true }));
    await db.transaction((tx) => chatLiveEraser.erase(tx, records as never));
    const { data } = (await nobody.get('/v1/public-stats/streams/twitch/b-1')).body;
    expect(data).toMatchObject({ summary: { total_messages: 1 }, emote_count: 1, top_chatters: [] });
    expect((await owner.get(report)).body.data).toMatchObject({
      total_messages: 1,
      unique_chatters: 1,
      top_chatters: [],
    });
    for (const format of ['json', 'txt']) expect(await file(format)).not.toMatch(/Name 1|login_1\b/);
  });

  test('a live stream is shown, and sent each minute to whoever listens', async () => {
    const live = await eventually(async () => {
      const { status, body } = await nobody.get('/v1/public-stats/streams/twitch/b-2');
      return status === 200 ? body.data : undefined;
    }, 'the live stream');
    expect(live.summary).toMatchObject({ broadcast_id: 'b-2', ended_at: null });
    const listener = await Listener.to(server.ws_url, server.credentials.access_token, 'public-stats:twitch:b-2');
    try {
      const first: any = await listener.next((one: any) => one.event_type === 'public-stats:bootstrap');
      expect(first.data.summary.broadcast_id).toBe('b-2');
      await countAgain();
      const next: any = await listener.next((one: any) => one.event_type === 'public-stats:updated');
      expect(Object.keys(next.data)).toEqual(Object.keys(first.data));
    } finally {
      listener.close();
    }
  });

  test('an open socket gets nothing any more from the opt-out on', async () => {
    const own_channel = `history:${server.credentials.account_id}` as const;
    const { access_token } = server.credentials;
    const listener = await Listener.to(server.ws_url, access_token, 'public-stats:twitch:b-2', own_channel);
    const of = (type: string) => listener.messages.filter((one) => one['event_type'] === type).length;
    const counted = async () => {
      const before = of('history:session_updated');
      await countAgain();
      await eventually(async () => of('history:session_updated') > before || undefined, 'a count of the live session');
    };
    try {
      await counted();
      await eventually(async () => of('public-stats:updated') > 0 || undefined, 'the public numbers');
      expect((await set({ is_public: false })).status).toBe(200);
      const shown = of('public-stats:updated');
      // The message of one count would come before the account's own message of the next one.
      await counted();
      await counted();
      expect(of('public-stats:updated')).toBe(shown);
    } finally {
      listener.close();
      expect((await set({ is_public: true })).status).toBe(200);
    }
  });

  test('stands in the directories', async () => {
    const browse = await nobody.get('/v1/public-stats/browse?platform=twitch&sort_by=peak_viewers&sort_dir=asc');
    expect(browse.body).toEqual({
      items: [
        {
          ...{ platform: 'twitch', channel_handle: handle(), channel_display_name: `Name ${channel_id}` },
          ...{ source: 'first_party', is_live: true, last_streamed_at: at(20) },
          ...{ hours_watched: 6.5, peak_viewers: 29, stream_count: 1 },
        },
      ],
      total: 1,
    });
    const games = await nobody.get('/v1/public-stats/games');
    expect(games.body.items).toEqual([
      { category: 'Go', hours_watched: 4.2, peak_viewers: 29, stream_count: 1, channel_count: 1 },
      { category: 'Chess', hours_watched: 2.5, peak_viewers: 29, stream_count: 1, channel_count: 1 },
    ]);
    const second = await nobody.get('/v1/public-stats/games?limit=1&offset=1&sort_dir=asc');
    expect(second.body).toMatchObject({ items: [{ category: 'Go' }], total: 2 });
    const emotes = await nobody.get('/v1/public-stats/emotes');
    expect(emotes.body.items).toEqual([
      { id: '25', url: null, provider: 'twitch', alt: 'Kappa', count: 1, channel_count: 1 },
    ]);
    for (const query of ['browse?sort_by=x', 'games?limit=101', 'emotes?sort_dir=up'])
      expect((await nobody.get(`/v1/public-stats/${query}`)).status).toBe(400);
  });

  test('disappears everywhere at once when its account opts out, and comes back', async () => {
    expect(await set({ is_public: false })).toMatchObject({
      status: 200,
      body: { data: { platform: 'twitch', is_public: false, opted_out_via: 'owner' } },
    });
    const listed = (await owner.get('/v1/public-stats/channels')).body.data;
    expect(listed.find((one: any) => one.platform === 'twitch')).toMatchObject({
      is_public: false,
      channel_name: `Name ${channel_id}`,
    });
    for (const path of ['', '/trends?range=DAYS_30', '/profile-history', '/panel-history'])
      expect((await channel(path, handle())).status).toBe(404);
    for (const path of ['b-1', 'b-2', 'b-1/metadata-history'])
      expect((await nobody.get(`/v1/public-stats/streams/twitch/${path}`)).status).toBe(404);
    for (const path of ['browse', 'games', 'emotes'])
      expect((await nobody.get(`/v1/public-stats/${path}`)).body).toEqual({ items: [], total: 0 });
    const log = await eventually(async () => {
      const { body } = await owner.get('/v1/account/audit-log?action=public_stats:channel_opted_out');
      return body.data?.[0];
    }, 'the entry of the audit log');
    expect(log.action).toBe('public_stats:channel_opted_out');
    expect((await set({ is_public: true })).body.data.is_public).toBe(true);
    expect((await channel('', handle())).status).toBe(200);
  });

  test('an operator closes it for its owner, whose own change counts from then on', async () => {
    const opt_out = (opted_out: boolean) => owner.send('PUT', `/v1/crawler/opt-outs/twitch/${handle()}`, { opted_out });
    expect((await opt_out(true)).body.data).toEqual({ platform: 'twitch', channel: handle(), opted_out: true });
    expect((await channel('', handle())).status).toBe(404);
    const entry = async () =>
      (await owner.get('/v1/public-stats/channels')).body.data.find((one: any) => one.platform === 'twitch');
    expect(await entry()).toMatchObject({ is_public: false, opted_out_via: 'operator' });
    expect((await set({ is_public: true })).body.data).toMatchObject({ is_public: true, opted_out_via: null });
    expect((await channel('', handle())).status).toBe(200);
    expect(await entry()).toMatchObject({ is_public: true, opted_out_via: null });
    expect((await opt_out(false)).status).toBe(200);
  });

  test('is closed with all others by the kill-switch', async () => {
    const flags = (await owner.get('/v1/admin/feature-flags')).body.data;
    const flag = flags.find((one: any) => one.key === 'system:public_stats');
    const turn = (enabled: boolean) => owner.send('PATCH', `/v1/admin/feature-flags/${flag.id}`, { enabled });
    expect((await turn(false)).status).toBe(200);
    await eventually(async () => ((await channel('', handle())).status === 403 ? true : undefined), 'the switch');
    for (const path of ['browse', 'games', 'emotes', 'streams/twitch/b-1'])
      expect(await nobody.get(`/v1/public-stats/${path}`)).toMatchObject({
        status: 403,
        body: { error: 'FEATURE_DISABLED' },
      });
    const gql = await nobody.gql('{ publicGames { items { category } } }');
    expect(gql.errors[0].extensions.code).toBe('FEATURE_DISABLED');
    expect((await turn(true)).status).toBe(200);
    await eventually(async () => ((await channel('', handle())).status === 200 ? true : undefined), 'the switch');
  });

  test('loses a stream with the report of it', async () => {
    const { body } = await owner.get('/v1/history');
    const { id } = body.data.find((one: any) => one.status === 'finalized');
    expect((await owner.send('DELETE', `/v1/history/reports/${id}`, undefined)).status).toBe(204);
    expect((await nobody.get('/v1/public-stats/streams/twitch/b-1')).status).toBe(404);
    // Its live stream is still there.
    expect((await channel('', handle())).body.data).toMatchObject({ stream_count: 1 });
    expect((await nobody.get('/v1/public-stats/games')).body).toEqual({ items: [], total: 0 });
  });

  test('is closed without a connection of an account with the feature', async () => {
    const { body } = await owner.get('/v1/connections/channel');
    const connection = body.data.find((one: any) => one.platform === 'twitch');
    expect((await owner.send('DELETE', `/v1/channel-connections/${connection.id}`, undefined)).status).toBe(204);
    expect((await channel('', handle())).status).toBe(404);
    expect((await nobody.get('/v1/public-stats/streams/twitch/b-2')).status).toBe(404);
  });
});
