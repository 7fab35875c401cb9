import { v7 as uuid } from 'uuid';
import { createPostgresShares } from '../../engines/leases/shares';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { ProcessSession } from '../../engines/postgres/process-session';
import type { RecordLog } from '../../engines/records/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { type Adapter, ConnectionRefused, type LinkedConnection } from '../../ingest/runtime/connection/adapter';
import { startAdapters } from '../../ingest/runtime/connection/adapters';
import { createLinkLeases } from '../../ingest/runtime/connection/link-leases';
import { createTrovoAdapter } from '../../ingest/trovo/adapter';
import { createYoutubeAdapter } from '../../ingest/youtube/adapter';
import { createYoutubeQuota } from '../../ingest/youtube/quota';
import { createHttpClients } from '../../vendors/http/client';
import { trovoOpenApi } from '../../vendors/trovo/open-api';
import { youtubeDataApi } from '../../vendors/youtube/data-api';
import { type TestDatabase, testDatabase } from '../support/database';
import { testParked } from '../support/parked';
import { silentLog } from '../support/log';
import { MemoryRecords, QUICK } from '../support/twitch';
import { eventually } from '../support/vendor-cloud';
import { FakeTrovo } from '../vendors/trovo-cloud';
import { type FakeBroadcast, FakeYoutube } from '../vendors/youtube-cloud';

const metrics = createPrometheusMetrics({});
const http = createHttpClients({ metrics, allow_loopback: true });
let t: TestDatabase;
let records: MemoryRecords;
let workers: { stop(): Promise<void> }[] = [];
beforeAll(async () => {
  t = await testDatabase();
});
beforeEach(() => {
  records = new MemoryRecords();
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  workers = [];
});
afterAll(async () => {
  await http.close();
  await t.drop();
});

type Token = (refused?: string) => string | null;

/** What a process with the role `worker` runs for one vendor, over engines of its own. */
function worker(adapter: Adapter, connection: LinkedConnection, token: Token) {
  const session = new ProcessSession({ connectionString: t.url }, silentLog);
  const shares = createPostgresShares({
    db: t.db,
    session,
    wakeups: createLocalWakeups(),
    log: silentLog,
    heartbeat_ms: 50,
  });
  const running = startAdapters({
    adapters: [adapter],
    connections: { list: async () => [connection], onChange: () => () => undefined },
    async token(_connection, refused) {
      const given = token(refused);
      if (given === null) throw new ConnectionRefused('no_token');
      return given;
    },
    refused: async () => undefined,
    shares,
    leases: createLinkLeases(t.db, session),
    records: records as unknown as RecordLog,
    parked: testParked(t.db),
    log: silentLog,
    metrics: createPrometheusMetrics({}),
    timings: QUICK,
    look_every_ms: 300,
  });
  const made = {
    held: () => running.held(),
    async stop() {
      workers = workers.filter((one) => one !== made);
      await running.stop();
      await shares.close();
      await session.close();
    },
  };
  workers.push(made);
  return made;
}

/** What the ledger lets count: each external id once. */
const texts = () => {
  const counted = new Map(
    records.records
      .filter(({ topic }: any) => topic === undefined || topic === 'chat-events')
      .map((one) => [one.external_id, one]),
  );
  return [...counted.values()]
    .filter(({ type }) => type.endsWith(':chat'))
    .map(({ raw }) => JSON.parse(raw).text as string)
    .sort();
};
const linkOf = async ({ connection_id }: LinkedConnection) => {
  const [row] = await t.db.query('select status, detail from adapter_links where connection_id = $1', [connection_id]);
  return row as { status: string; detail: string | null } | undefined;
};
const said = (text: string) => async () => texts().includes(text) || undefined;

describe('a YouTube chat', () => {
  let youtube: FakeYoutube;
  let token: string;
  let connection: LinkedConnection;
  let on_air: FakeBroadcast[];
  beforeEach(async () => {
    youtube = await new FakeYoutube().start();
    token = youtube.tokens.give('UCa').access_token;
    connection = { connection_id: uuid(), account_id: uuid(), channel_id: 'UCa', client_id: uuid() };
    on_air = [];
  });
  afterEach(() => youtube.close());

  const adapter = (daily_units = 10_000_000, page_ms = 20) =>
    createYoutubeAdapter({
      api: youtubeDataApi(http, { api_url: youtube.base_url }),
      quota: createYoutubeQuota({ db: t.db, daily_units }),
      chatsOf: async () => on_air.map(({ live_chat_id }) => live_chat_id),
      timings: { look_ms: 20, page_ms, retry: { first_ms: 20, most_ms: 100 } },
    }) as Adapter;
  const renewed: Token = (refused) => {
    if (refused === token) token = youtube.tokens.give('UCa').access_token;
    return token;
  };

  test('is not opened again and again by a server that closes after each page', async () => {
    youtube.quota = 1_000_000;
    youtube.brief = true;
    const page_ms = 200;
    on_air = [youtube.goLive('UCa')];
    worker(adapter(10_000_000, page_ms), connection, renewed);
    const opened = () => youtube.calls.filter(({ path }) => path === '/youtube/v3/liveChat/messages/stream');
    await eventually(async () => opened().length > 10 || undefined, 'some openings');
    const times = opened().map(({ at }) => at);
    // Their sum, because a call that arrives late shortens the next pause.
    expect(times.at(-1)! - times[0]!).toBeGreaterThan(((times.length - 1) * page_ms) / 2);
  });

  test('is read as a stream, and goes on from the last page when it is cut, refused or the server fails', async () => {
    youtube.quota = 1_000_000;
    worker(adapter(), connection, renewed);
    const broadcast = youtube.goLive('UCa');
    youtube.text(broadcast, 'UCviewer', 'before');
    on_air = [broadcast];
    await eventually(said('before'), 'the history');
    for (let n = 0; n < 20; n += 1) {
      youtube.text(broadcast, 'UCviewer', `message ${n}`);
      if (n === 5) youtube.cutAll();
      if (n === 9) youtube.tokens.expire(token);
      if (n === 12) {
        youtube.fail({ path: '/youtube/v3/liveChat', status: 503, retry_after: 0, times: 2 });
        youtube.cutAll();
      }
      await new Promise((resume) => setTimeout(resume, 10));
    }
    const expected = ['before', ...Array.from({ length: 20 }, (_, n) => `message ${n}`)].sort();
    await eventually(async () => texts().length === expected.length || undefined, 'all of them');
    expect(texts()).toEqual(expected);
    expect(youtube.asked('/youtube/v3/liveChat/messages')).toBe(0);
    youtube.goOffline(broadcast);
    await eventually(
      async () => (await linkOf(connection))?.detail === 'Waiting for a broadcast.' || undefined,
      'its end',
    );
  });

  test('is read by pages where there is no stream, and by another worker from where the first one ended', async () => {
    youtube.quota = 1_000_000;
    youtube.streaming = false;
    youtube.polling_interval_ms = 20;
    const first = worker(adapter(), connection, renewed);
    const broadcast = youtube.goLive('UCa');
    on_air = [broadcast];
    youtube.text(broadcast, 'UCviewer', 'one');
    await eventually(said('one'), 'the first');
    await first.stop();
    youtube.text(broadcast, 'UCviewer', 'while nobody listened');
    worker(adapter(), connection, renewed);
    await eventually(said('while nobody listened'), 'what was said meanwhile');
    expect(texts()).toEqual(['one', 'while nobody listened']);
  });

  describe.each([
    ['as a stream', true],
    ['by pages', false],
  ])('read %s', (_way, streaming) => {
    beforeEach(() => {
      Object.assign(youtube, { quota: 1_000_000, streaming, polling_interval_ms: 20 });
      on_air = [youtube.goLive('UCa')];
    });
    const snippet = (messageText: string, type = 'textMessageEvent') => ({
      type,
      publishedAt: new Date().toISOString(),
      textMessageDetails: { messageText },
    });
    const author = (displayName: string) => ({ channelId: 'UCviewer', displayName });
    const end = { snippet: { type: 'chatEndedEvent', publishedAt: new Date().toISOString() } };
    const detail = (words: RegExp) => async () => words.test((await linkOf(connection))?.detail ?? '') || undefined;

    test.each([
      ['the text of a message', { snippet: snippet('chatEndedEvent'), authorDetails: author('Ada') }],
      ['the name of a viewer', { snippet: snippet('hello'), authorDetails: author('chatEndedEvent') }],
      ['the name of an unknown member', { snippet: { ...snippet('hello'), chatEndedEvent: {} } }],
      ['the type of something inside a message', { snippet: { ...snippet('hello'), inner: end } }],
    ])('continues when %s is the type of its end', async (_name, item) => {
      worker(adapter(), connection, renewed);
      const [broadcast] = on_air as [FakeBroadcast];
      youtube.text(broadcast, 'UCviewer', 'good evening');
      await eventually(said('good evening'), 'the first message');
      youtube.say(broadcast, item);
      await eventually(async () => texts().length === 2 || undefined, 'the second message');
      youtube.text(broadcast, 'UCviewer', 'anyone there');
      await eventually(said('anyone there'), 'the third message');
    });

    test.each([null, '', 0, '0001-01-01T00:00:00Z'])('continues while the time of its end is %p', async (no_end) => {
      youtube.no_end = no_end;
      worker(adapter(), connection, renewed);
      const [broadcast] = on_air as [FakeBroadcast];
      youtube.text(broadcast, 'UCviewer', 'good evening');
      await eventually(said('good evening'), 'the first message');
      youtube.text(broadcast, 'UCviewer', 'anyone there');
      await eventually(said('anyone there'), 'the second message');
    });

    test('ends with the item of its end', async () => {
      worker(adapter(), connection, renewed);
      const [broadcast] = on_air as [FakeBroadcast];
      youtube.text(broadcast, 'UCviewer', 'good night');
      await eventually(detail(/^Reading the live chat/), 'its status');
      youtube.say(broadcast, end);
      await eventually(detail(/^Waiting for a broadcast/), 'its end');
      youtube.text(broadcast, 'UCviewer', 'anyone there');
      on_air.push(youtube.goLive('UCa'));
      youtube.text(on_air[1]!, 'UCviewer', 'welcome back');
      await eventually(said('welcome back'), 'the next broadcast');
      expect(texts()).toEqual(['good night', 'welcome back']);
    });
  });

  test('waits visibly, and asks nothing, when the quota of the day is used up', async () => {
    youtube.quota = 0;
    on_air = [youtube.goLive('UCa')];
    worker(adapter(), connection, renewed);
    await eventually(async () => (await linkOf(connection))?.status === 'degraded' || undefined, 'its status');
    expect((await linkOf(connection))!.detail).toMatch(/quota is used up; it goes on at \d{4}-/);
    const asked = youtube.calls.length;
    await new Promise((resume) => setTimeout(resume, 300));
    expect(youtube.calls.length).toBe(asked);
  });

  test('needs its owner when the token is taken back', async () => {
    on_air = [youtube.goLive('UCa')];
    youtube.tokens.revokeAll('UCa');
    worker(adapter(), connection, (refused) => (refused === undefined ? token : null));
    await eventually(
      async () => (await linkOf(connection))?.status === 'reconnect_required' || undefined,
      'its status',
    );
  });
});

describe('a Trovo chat', () => {
  let trovo: FakeTrovo;
  let token: string;
  let connection: LinkedConnection;
  beforeEach(async () => {
    trovo = await new FakeTrovo().start();
    trovo.channel('100');
    trovo.gap = 0.05;
    token = trovo.tokens.give('100').access_token;
    connection = { connection_id: uuid(), account_id: uuid(), channel_id: '100', client_id: 'app' };
  });
  afterEach(() => trovo.close());
  const adapter = () =>
    createTrovoAdapter({
      api: trovoOpenApi(http, { api_url: trovo.base_url, chat_url: trovo.chat_url }),
      timings: { least_gap_ms: 30, gap_ms: 50 },
    }) as Adapter;
  const listening = async () => trovo.listening('100').size > 0 || undefined;
  const say = (content: string, more: object = {}) =>
    trovo.say('100', { content, sender_id: 'v', user_name: 'viewer', ...more });

  test('is read past cuts, repeated items and a line that went dead, each item once', async () => {
    const old = Math.floor(Date.now() / 1000) - 600;
    say('long ago', { send_time: old });
    worker(adapter(), connection, () => token);
    await eventually(listening, 'the socket');
    const items = [say('one'), say('two')];
    await eventually(said('two'), 'the first two');
    trovo.again('100', items);
    trovo.cutAll();
    say('while it was cut');
    await eventually(said('while it was cut'), 'what the history repeats');
    await eventually(async () => trovo.pings > 2 || undefined, 'pings');
    trovo.deaf = true;
    await eventually(async () => trovo.asked('/openplatform/chat/token') > 2 || undefined, 'a new socket');
    trovo.deaf = false;
    await eventually(listening, 'the socket');
    say('at last');
    await eventually(said('at last'), 'the last');
    expect(texts()).toEqual(['at last', 'one', 'two', 'while it was cut']);
  });

  test('is handed over to a second worker without a gap, and read as everybody may without the scope', async () => {
    trovo.fail({ path: '/openplatform/chat/token', status: 403, times: 100 });
    const first = worker(adapter(), connection, () => token);
    await eventually(listening, 'the socket');
    expect(trovo.asked('/openplatform/chat/channel-token/100')).toBeGreaterThan(0);
    let n = 0;
    const talking = setInterval(() => say(`said ${(n += 1)}`), 5);
    worker(adapter(), connection, () => token);
    await new Promise((resume) => setTimeout(resume, 200));
    await first.stop();
    await new Promise((resume) => setTimeout(resume, 200));
    clearInterval(talking);
    await eventually(said(`said ${n}`), 'the last');
    expect(texts()).toEqual(Array.from({ length: n }, (_, at) => `said ${at + 1}`).sort());
  });
});
