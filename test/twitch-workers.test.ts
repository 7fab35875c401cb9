import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { TOPICS } from '../domain/records';
import { createPostgresBroker } from '../engines/broker/postgres';
import type { Broker } from '../engines/broker/port';
import { createRecordLog } from '../engines/records/log';
import { createSubjectKeys } from '../engines/subject-keys/postgres';
import { createLocalWakeups } from '../engines/wakeups/local';
import { SUBSCRIPTIONS } from '../ingest/twitch/subscriptions';
import { pause } from '../kernel/signal';
import { type TestDatabase, testDatabase } from './support/database';
import { until } from './support/projections';
import { TEST_KEYS, TestConnections } from './support/twitch';
import { FakeTwitch } from './vendors/twitch-cloud';

const CHILD = join(__dirname, '../dist/test/support/twitch-child.js');
const CHANNELS = ['1', '2', '3', '4'];
const EVERY_MS = 20;

describe('workers that hold channels of Twitch', () => {
  let t: TestDatabase;
  let broker: Broker;
  let twitch: FakeTwitch;
  let connections: TestConnections;
  const workers: ChildProcess[] = [];
  let sending: NodeJS.Timeout;
  /** Users whose follow was sent to somebody, with the time. */
  const told = new Map<string, number>();
  let sent = 0;

  beforeAll(async () => {
    t = await testDatabase();
    broker = createPostgresBroker({ pool: t.db.pool, wakeups: createLocalWakeups() });
    await broker.ensureTopics([TOPICS.platform_events, TOPICS.chat_events], 2);
    twitch = await new FakeTwitch().start();
    connections = new TestConnections(twitch);
    for (const id of CHANNELS) connections.connect(id);
    sending = setInterval(tell, EVERY_MS);
  });
  afterAll(async () => {
    clearInterval(sending);
    for (const worker of workers) worker.kill('SIGKILL');
    await twitch.close();
    await broker.close();
    await t.drop();
  });

  function tell(): void {
    for (const broadcaster_user_id of CHANNELS) {
      const user_id = String((sent += 1));
      const event = { user_id, broadcaster_user_id, followed_at: new Date().toISOString() };
      if (twitch.notify(broadcaster_user_id, 'channel.follow', event) > 0) told.set(user_id, Date.now());
    }
  }

  function begin(): ChildProcess {
    const given = {
      url: t.url,
      base_url: twitch.base_url,
      eventsub_url: twitch.eventsub_url,
      connections: connections.all,
      tokens: Object.fromEntries(connections.tokens),
    };
    const worker = spawn(process.execPath, [CHILD, JSON.stringify(given)], { stdio: ['ignore', 'ignore', 'inherit'] });
    workers.push(worker);
    return worker;
  }

  const allSubscribed = () =>
    until(() =>
      CHANNELS.every((id) => twitch.of(id).some(({ subscriptions }) => subscriptions.size === SUBSCRIPTIONS.length)),
    );

  /** Users of all records, as often as they are there. */
  async function stored(): Promise<string[]> {
    const log = createRecordLog({ broker, subject_keys: createSubjectKeys({ db: t.db, master_keys: TEST_KEYS }) });
    const users: string[] = [];
    for (const partition of (await broker.bounds(TOPICS.platform_events)).keys()) {
      for await (const page of broker.read(TOPICS.platform_events, partition, 0)) {
        const { records } = await log.decode(page);
        users.push(...records.map(({ raw }) => (JSON.parse(raw) as { user_id: string }).user_id));
      }
    }
    return users;
  }

  const missing = async (sent_within: (at: number) => boolean) => {
    const there = new Set(await stored());
    return [...told].filter(([user, at]) => sent_within(at) && !there.has(user)).map(([user]) => user);
  };
  const twice = async () => {
    const users = await stored();
    return users.filter((user, n) => users.indexOf(user) !== n);
  };

  test('one that is killed is replaced; what was stored is there once, and what comes afterwards too', async () => {
    const first = begin();
    await allSubscribed();
    await pause(500);
    const killed_at = Date.now();
    first.kill('SIGKILL');
    await until(() => CHANNELS.every((id) => twitch.of(id).length === 0));
    begin();
    await allSubscribed();
    await pause(500);
    const now = Date.now();
    // What it had in hand at that moment is lost with it: Twitch sends nothing again.
    const certain = (at: number) => (at < killed_at - 300 || at > killed_at + 300) && at < now;
    await until(async () => (await missing(certain)).length === 0);
    expect(await twice()).toEqual([]);
    expect((await stored()).length).toBeGreaterThan(50);
  });

  test('one that is paused is replaced; awake again it stores what nobody else can have received, and no more', async () => {
    const [, paused] = workers;
    const paused_at = Date.now();
    paused!.kill('SIGSTOP');
    begin();
    // Its sockets stay open: Twitch goes on sending to them.
    await until(() => CHANNELS.every((id) => twitch.of(id).length === 2), 30_000);
    await allSubscribed();
    await pause(500);
    paused!.kill('SIGCONT');
    await until(() => CHANNELS.every((id) => twitch.of(id).length === 1), 30_000);
    const now = Date.now();
    await until(async () => (await missing((at) => at > paused_at - 300 && at < now)).length === 0);
    expect(await twice()).toEqual([]);
  });

  test('all of them stop cleanly', async () => {
    const last = workers.at(-1)!;
    const ended = new Promise((resolve) => last.once('exit', resolve));
    for (const worker of workers) worker.kill('SIGTERM');
    expect(await ended).toBe(0);
    await until(() => twitch.sessions.size === 0);
  });
});
