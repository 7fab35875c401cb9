import { type TestDatabase, testDatabase } from '../../support/database';
import { silentLog } from '../../support/log';
import { timeLimit } from '../../support/patience';
import {
  linkOf,
  type LinkRow,
  MemoryRecords,
  QUICK,
  startWorker,
  TestConnections,
  type TestWorker,
} from '../../support/twitch';
import { until } from '../../support/projections';
import { FakeTwitch } from '../../vendors/twitch-cloud';

const CHANNEL = '1337';
const follow = (user_id: string) => ({
  user_id,
  user_login: `viewer_${user_id}`,
  user_name: `Viewer_${user_id}`,
  broadcaster_user_id: CHANNEL,
  followed_at: new Date().toISOString(),
});

describe('a channel on Twitch', () => {
  let t: TestDatabase;
  let twitch: FakeTwitch;
  let connections: TestConnections;
  let records: MemoryRecords;
  const workers: TestWorker[] = [];

  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(() => t.drop());
  beforeEach(async () => {
    twitch = await new FakeTwitch().start();
    connections = new TestConnections(twitch);
    records = new MemoryRecords();
  });
  afterEach(async () => {
    for (const worker of workers.splice(0)) await worker.stop();
    await twitch.close();
    await t.db.query('delete from work_members');
    await t.db.query('delete from work_holds');
  });

  function begin(log = silentLog, timings = QUICK, stop_within_ms?: number): TestWorker {
    const worker = startWorker({ db: t.db, url: t.url, twitch, connections, records, log, timings, stop_within_ms });
    workers.push(worker);
    return worker;
  }
  // However slow the machine is, nobody leaves before the other is there.
  const patient = { ...QUICK, handover_ms: 60_000, stop_handover_ms: 60_000 };
  const statusOf = async (connection: { connection_id: string; account_id: string; channel_id: string }) =>
    (await linkOf(t.db, connection))?.status;

  test('that waits for its turn in another worker is read and stored by the one before', async () => {
    const channels = Array.from({ length: 24 }, (_, n) => String(n + 1));
    const connected = channels.map((id) => connections.connect(id));
    const first = begin(silentLog, patient);
    for (const one of connected) await until(async () => (await statusOf(one)) === 'connected');
    const accounts = connected.map(({ account_id }) => account_id);
    const holders = () =>
      t.db.query(
        'select holder, count(*)::int as links from adapter_links where account_id = any ($1) group by 1 order by 2',
        [accounts],
      );
    const [before] = await holders();
    const asked = twitch.asked('/helix/eventsub/subscriptions');
    twitch.fail({ path: '/helix/eventsub', times: 20, status: 429, retry_after: 8 });
    begin(silentLog, patient);
    const offering = () => t.db.query("select 1 as one from work_members where 'twitch' = any (kinds)");
    await until(async () => (await offering()).length === 2);
    const stopped = first.stop();
    await until(() => twitch.asked('/helix/eventsub/subscriptions') === asked + 20);
    for (const id of channels) twitch.notify(id, 'channel.follow', { ...follow(id), broadcaster_user_id: id });
    await until(() => records.of('twitch:follower').length >= 4);
    expect(await holders()).toMatchObject([{ holder: before!['holder'], links: 4 }, { links: 20 }]);
    await stopped;
    workers.shift();
    await until(() => records.counted('twitch:follower').length >= channels.length);
    expect(records.counted('twitch:follower')).toHaveLength(channels.length);
  });

  test('of many that a stopping worker holds, those left over at its end tell what is missing', async () => {
    const STOP_WITHIN_MS = 3_000;
    const channels = Array.from({ length: 40 }, (_, n) => String(n + 1));
    const connected = channels.map((id) => connections.connect(id));
    const first = begin(silentLog, QUICK, STOP_WITHIN_MS);
    for (const one of connected) await until(async () => (await statusOf(one)) === 'connected');
    twitch.slow_ms = 300;
    const sent: { user: string; at: number; channel_id: string }[] = [];
    const timer = setInterval(() => {
      for (const channel_id of channels) {
        const user = String(sent.length + 1);
        sent.push({ user, at: Date.now(), channel_id });
        // Its message id differs for each session: an event of two sessions that is stored twice counts twice.
        twitch.notify(channel_id, 'channel.cheer', { user_id: user, broadcaster_user_id: channel_id });
      }
    }, 50);
    const second = begin();
    const offering = () => t.db.query("select 1 as one from work_members where 'twitch' = any (kinds)");
    await until(async () => (await offering()).length === 2);
    const stopped_at = performance.now();
    await first.stop();
    expect(performance.now() - stopped_at).toBeLessThan(timeLimit(STOP_WITHIN_MS + 1_000));
    workers.shift();
    await until(() => second.held() === channels.length);
    for (const one of connected) await until(async () => (await statusOf(one)) === 'connected');
    clearInterval(timer);
    const last = sent.slice(-channels.length).map(({ user }) => `twitch:${user}`);
    const stored = () => new Set(records.of('twitch:cheer').map(({ subject }) => subject));
    await until(() => last.every((user) => stored().has(user)));
    const rows = new Map<string, LinkRow>();
    const untold = async () => {
      for (const one of connected) rows.set(one.channel_id, (await linkOf(t.db, one))!);
      const all = stored();
      return sent.flatMap(({ user, at, channel_id }) => {
        const { missed_from, missed_to } = rows.get(channel_id)!;
        const told = missed_from !== null && at >= Date.parse(missed_from) && at <= Date.parse(missed_to!);
        return told || all.has(`twitch:${user}`) ? [] : { at, channel_id, missed_from, missed_to };
      });
    };
    // A gap is announced when Twitch was asked for what it still shows.
    await until(async () => (await untold()).length === 0).catch(() => undefined);
    expect(await untold()).toEqual([]);
    expect(sent.filter(({ user }) => !stored().has(`twitch:${user}`)).length).toBeGreaterThan(0);
    expect(records.counted('twitch:cheer')).toHaveLength(stored().size);
  });
});
