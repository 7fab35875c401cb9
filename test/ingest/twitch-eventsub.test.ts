import { v4 as uuid } from 'uuid';
import { readChatRecord } from '../../domain/chat/chat-messages';
import { chatPush } from '../../domain/chat/chat-push';
import type { LinkedConnection } from '../../ingest/runtime/connection/adapter';
import { EngineUnavailable } from '../../kernel/failures';
import { createLastKnown } from '../../ingest/twitch/last-known';
import { SUBSCRIPTIONS } from '../../ingest/twitch/subscriptions';
import { type TestDatabase, testDatabase } from '../support/database';
import { keptLog, silentLog } from '../support/log';
import { linkOf, MemoryRecords, QUICK, startWorker, TestConnections, type TestWorker } from '../support/twitch';
import { until } from '../support/projections';
import { FakeTwitch } from '../vendors/twitch-cloud';

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
  const subscribed = (channel_id = CHANNEL) =>
    until(() => twitch.subscriptionsOf(channel_id).length === SUBSCRIPTIONS.length);
  const statusOf = async (connection: { connection_id: string; account_id: string; channel_id: string }) =>
    (await linkOf(t.db, connection))?.status;

  const knowsStream = (connection: LinkedConnection, stream_id: string) =>
    until(async () => (await linkOf(t.db, connection))?.state?.known?.stream === stream_id);

  test('is subscribed to everything over one socket, and what it sends is stored under its account', async () => {
    const connection = connections.connect(CHANNEL);
    begin();
    await subscribed();
    expect(twitch.sessions.size).toBe(1);
    expect(twitch.notify(CHANNEL, 'channel.follow', follow('1'))).toBe(1);
    await until(() => records.of('twitch:follower').length === 1);
    expect(records.of('twitch:follower')[0]).toMatchObject({
      account_id: connection.account_id,
      platform: 'twitch',
      subject: 'twitch:1',
      external_id: expect.stringMatching(/^twitch:state:channel\.follow:1:/),
    });
    await until(async () => (await statusOf(connection)) === 'connected');
    expect(twitch.inbound).toBe(0);
  });

  test('moves to another socket without a gap and without subscribing again', async () => {
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    const asked = twitch.asked('/helix/eventsub/subscriptions');
    for (let n = 0; n < 5; n += 1) twitch.notify(CHANNEL, 'channel.follow', follow(`a${n}`));
    const [old] = twitch.of(CHANNEL);
    twitch.move(CHANNEL);
    for (let n = 0; n < 5; n += 1) twitch.notify(CHANNEL, 'channel.follow', follow(`b${n}`));
    await until(() => twitch.of(CHANNEL).length === 1 && twitch.of(CHANNEL)[0] !== old);
    for (let n = 0; n < 5; n += 1) twitch.notify(CHANNEL, 'channel.follow', follow(`c${n}`));
    await until(() => records.of('twitch:follower').length === 15);
    await until(() => twitch.sessions.size === 1);
    expect(twitch.asked('/helix/eventsub/subscriptions')).toBe(asked);
  });

  test('is opened anew when its socket is lost: what goes on is fetched, what cannot be is said', async () => {
    const connection = connections.connect(CHANNEL);
    begin();
    await subscribed();
    twitch.notify(CHANNEL, 'channel.follow', follow('1'));
    await until(() => records.of('twitch:follower').length === 1);
    const channel = twitch.channel(CHANNEL);
    const stream = {
      id: 's-1',
      user_id: CHANNEL,
      user_login: 'us',
      user_name: 'Us',
      type: 'live',
      started_at: new Date().toISOString(),
    };
    channel.stream = stream;
    channel.polls = [
      { id: 'p-1', status: 'ACTIVE', title: '?', choices: [], started_at: new Date().toISOString(), duration: 60 },
    ];
    channel.goals = [{ id: 'g-1', type: 'follower', current_amount: 7, target_amount: 10 }];
    twitch.drop(CHANNEL, 4000);
    await subscribed();
    await until(() => records.of('twitch:goal').length === 1);
    await until(() => records.of('twitch:poll').length === 1);
    await until(() => records.of('twitch:stream_online').length === 1);
    expect(records.of('twitch:stream_online')[0]).toMatchObject({ external_id: 'twitch:state:stream.online:s-1' });
    expect(JSON.parse(records.of('twitch:poll')[0]!.raw)).toMatchObject({ id: 'p-1', status: 'active' });
    await until(async () => (await linkOf(t.db, connection))?.missed_detail !== null);
    expect((await linkOf(t.db, connection))!.missed_detail).toContain('follows, cheers');

    // The next gap tells what ended meanwhile, and nothing twice.
    channel.stream = null;
    channel.polls = [{ ...channel.polls[0], status: 'COMPLETED', ended_at: new Date().toISOString() }];
    twitch.drop(CHANNEL, 4006);
    await until(() => records.of('twitch:stream_offline').length === 1);
    await until(() => records.of('twitch:poll_end').length === 1);
    expect(records.of('twitch:goal')).toHaveLength(1);
    expect(records.of('twitch:stream_online')).toHaveLength(1);

    // Twitch's list was out of date: the stream had not ended.
    channel.stream = stream;
    twitch.drop(CHANNEL, 4000);
    await until(() => records.of('twitch:stream_online').length === 2);
    const [online, again] = records.of('twitch:stream_online');
    expect(again!.external_id).toBe(online!.external_id);
    expect(JSON.parse(records.of('twitch:stream_offline')[0]!.raw)).toMatchObject({ id: 's-1' });
    expect([online!.seen_at, again!.seen_at]).toEqual([expect.any(String), expect.any(String)]);
    expect(online!.seen_at! < again!.seen_at!).toBe(true);
  });

  test('has the time at which a look began, so that later reports count against it', async () => {
    const connection = connections.connect(CHANNEL);
    begin();
    await subscribed();
    const online = { id: 's-1', broadcaster_user_id: CHANNEL, type: 'live', started_at: new Date().toISOString() };
    twitch.notify(CHANNEL, 'stream.online', online);
    await knowsStream(connection, 's-1');
    await until(() => twitch.asked('/helix/goals') === 1);
    twitch.fail({ path: '/helix/goals', status: 503, retry_after: 1 });
    twitch.drop(CHANNEL, 4000);
    await until(() => twitch.asked('/helix/goals') === 2);
    twitch.notify(CHANNEL, 'stream.online', online);
    await until(() => records.of('twitch:stream_offline').length === 1);
    const { reported_at } = records.of('twitch:stream_online').at(-1)!;
    const { seen_at } = records.of('twitch:stream_offline')[0]!;
    expect(Date.parse(seen_at!)).toBeLessThanOrEqual(Date.parse(reported_at!));
  });

  describe('whose poll, prediction and hype train looks have ended', () => {
    const now = () => new Date().toISOString();
    const poll = { id: 'p-1', status: 'ACTIVE', title: '?', choices: [], started_at: now(), duration: 60 };
    const prediction = { id: 'r-1', status: 'LOCKED', outcomes: [], created_at: now() };
    const train = { id: 'h-1', total: 700 };
    /** State at Twitch; a new amount of the goal, which is read last, marks the end of a look. */
    const show = (is_over: boolean, amount: number) =>
      Object.assign(twitch.channel(CHANNEL), {
        polls: [is_over ? { ...poll, status: 'COMPLETED', ended_at: now() } : poll],
        predictions: [is_over ? { ...prediction, status: 'RESOLVED', ended_at: now() } : prediction],
        hype_train: is_over ? null : train,
        goals: [{ id: `g-${amount}`, type: 'follower', current_amount: amount, target_amount: 10 }],
      });
    const looked = async (amount: number) => {
      await until(() => records.of('twitch:goal').some(({ raw }) => JSON.parse(raw).current_amount === amount));
      await subscribed();
    };
    const look = async (is_over: boolean, amount: number) => {
      show(is_over, amount);
      twitch.drop(CHANNEL, 4000);
      await looked(amount);
    };
    /** Events of a type, each counted once as by the ledger. */
    const events = (type: string) => new Set(records.of(`twitch:${type}`).map(({ external_id }) => external_id)).size;
    const begins = () => [events('poll'), events('prediction_lock'), events('hype_train')];
    const ends = () => [events('poll_end'), events('prediction_end'), events('hype_train_end')];

    beforeEach(async () => {
      show(false, 1);
      connections.connect(CHANNEL);
      begin();
      await looked(1);
    });

    test('stores that a later look shows them again, and their next end', async () => {
      expect([begins(), ends()]).toEqual([[1, 1, 1], [0, 0, 0]]); // prettier-ignore
      await look(true, 2);
      expect([begins(), ends()]).toEqual([[1, 1, 1], [1, 1, 1]]); // prettier-ignore
      await look(false, 3);
      expect([begins(), ends()]).toEqual([[2, 2, 2], [1, 1, 1]]); // prettier-ignore
      await look(true, 4);
      expect([begins(), ends()]).toEqual([[2, 2, 2], [2, 2, 2]]); // prettier-ignore
      // The next look finds nothing new.
      await look(true, 5);
      expect([begins(), ends()]).toEqual([[2, 2, 2], [2, 2, 2]]); // prettier-ignore
    });

    test('stores the end that Twitch reports, and ignores looks that still show them', async () => {
      await look(true, 2);
      twitch.notify(CHANNEL, 'channel.poll.end', { ...poll, status: 'completed', ended_at: now() });
      twitch.notify(CHANNEL, 'channel.prediction.end', { ...prediction, status: 'resolved', ended_at: now() });
      twitch.notify(CHANNEL, 'channel.hype_train.end', { ...train, ended_at: now() });
      twitch.notify(CHANNEL, 'channel.goal.end', { id: 'g-2', current_amount: 2, ended_at: now() });
      await until(() => records.of('twitch:goal_end').length === 1);
      expect(ends()).toEqual([2, 2, 2]);
      const { goals } = show(false, 3);
      goals.unshift({ ...goals[0]!, id: 'g-2', current_amount: 7 });
      twitch.drop(CHANNEL, 4000);
      await looked(3);
      expect([begins(), ends()]).toEqual([[1, 1, 1], [2, 2, 2]]); // prettier-ignore
      expect(records.of('twitch:goal').filter(({ raw }) => JSON.parse(raw).id === 'g-2')).toHaveLength(1);
    });
  });

  test('that its owner begins anew goes on from what was known of the channel, and says what may be missing', async () => {
    const connection = connections.connect(CHANNEL);
    begin();
    await subscribed();
    twitch.notify(CHANNEL, 'stream.online', { id: 's-1', broadcaster_user_id: CHANNEL, type: 'live' });
    await knowsStream(connection, 's-1');
    const [old] = twitch.of(CHANNEL);
    connections.beginAnew(connection);
    await until(() => twitch.of(CHANNEL).length === 1 && twitch.of(CHANNEL)[0] !== old);
    // Nobody was told that it has ended.
    await until(() => records.of('twitch:stream_offline').length === 1);
    await until(async () => typeof (await linkOf(t.db, connection))?.missed_detail === 'string');
  });

  test('that falls silent is given up after 1.2 times what was promised', async () => {
    twitch.keepalive_seconds = 1;
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    const [old] = twitch.of(CHANNEL);
    twitch.notify(CHANNEL, 'channel.follow', follow('1'));
    twitch.silent = true;
    const begun = performance.now();
    await until(() => twitch.of(CHANNEL)[0] !== old);
    expect(performance.now() - begun).toBeGreaterThan(1_190);
    twitch.silent = false;
  });

  test('that promises a word in years is looked at in minutes', async () => {
    const timers = jest.spyOn(global, 'setTimeout');
    twitch.keepalive_seconds = 2e6;
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    // Others of the process wait for something, too.
    const waits = timers.mock.calls.map(([, ms = 0]) => ms);
    timers.mockRestore();
    expect(waits).toContain(720_000);
    expect(Math.max(...waits)).toBeLessThan(2 ** 31);
  });

  test('takes an older version where the newer one is not known, as at Twitch’s own mock', async () => {
    const message = 'The combination of values in the type and version fields is not valid';
    twitch.refused.set('channel.hype_train.progress/2', { status: 400, message });
    const connection = connections.connect(CHANNEL);
    begin();
    await subscribed();
    const made = twitch.subscriptionsOf(CHANNEL).filter(({ type }) => type.startsWith('channel.hype_train'));
    expect(new Map(made.map(({ type, version }) => [type, version]))).toEqual(
      new Map([
        ['channel.hype_train.begin', '2'],
        ['channel.hype_train.progress', '1'],
        ['channel.hype_train.end', '2'],
      ]),
    );
    await until(async () => (await statusOf(connection)) === 'connected');
  });

  test('is degraded by what Twitch refuses, and flagged when its owner takes it back', async () => {
    twitch.refused.set('channel.moderate', { status: 403, message: 'subscription missing proper authorization' });
    const connection = connections.connect(CHANNEL);
    begin();
    await until(async () => (await statusOf(connection)) === 'degraded');
    expect((await linkOf(t.db, connection))!.detail).toContain('channel.moderate');
    twitch.revoke(CHANNEL, 'version_removed', 'channel.poll.begin');
    await until(async () => (await linkOf(t.db, connection))!.detail!.includes('channel.poll.begin'));
    twitch.revoke(CHANNEL, 'authorization_revoked');
    await until(() => connections.refused.length > 0);
    expect(connections.refused[0]).toEqual({
      connection_id: connection.connection_id,
      reason: 'authorization_revoked',
    });
    await until(async () => (await statusOf(connection)) === 'reconnect_required');
  });

  test('waits for a full bucket of calls, and bears errors of the server', async () => {
    connections.connect(CHANNEL);
    twitch.fail({ path: '/helix/eventsub', times: 3, status: 429, retry_after: 0 });
    twitch.fail({ path: '/helix/eventsub', times: 2, status: 503 });
    begin();
    await subscribed();
    expect(twitch.asked('/helix/eventsub/subscriptions')).toBe(SUBSCRIPTIONS.length + 5);
  });

  test('makes six calls at a time, and none that its bucket does not have', async () => {
    connections.connect(CHANNEL);
    twitch.slow_ms = 100;
    twitch.buckets.size = 20;
    begin();
    await subscribed();
    await until(() => twitch.asked('/helix/goals') > 0);
    expect(twitch.most_subscribing).toBe(6);
    expect(twitch.calls.filter(({ status }) => status === 429)).toEqual([]);
  });

  test('waits for another socket of the same user to go, when Twitch allows no more', async () => {
    const message = 'number of websocket transports limit exceeded';
    twitch.refused.set('stream.online', { status: 429, message });
    const connection = connections.connect(CHANNEL);
    begin();
    await until(() => twitch.asked('/helix/eventsub/subscriptions') >= 1);
    twitch.refused.clear();
    await subscribed();
    await until(async () => (await statusOf(connection)) === 'connected');
    expect(twitch.sessions.size).toBe(1);
  });

  describe('a deletion, reported under two types', () => {
    const moderator = { moderator_user_id: '9', moderator_user_login: 'mod', moderator_user_name: 'Mod' };
    const us = { broadcaster_user_id: CHANNEL };
    const user = { user_id: '7', user_login: 'u', user_name: 'U' };
    const target = { target_user_id: '7', target_user_login: 'u', target_user_name: 'U' };
    const own = ['channel.chat.message_delete', { ...us, ...target, message_id: 'm-1' }] as const;
    const detail = { action: 'delete', delete: { ...user, message_id: 'm-1', message_body: 'rude' } };
    const moderate = ['channel.moderate', { ...us, ...moderator, ...detail }] as const;

    test('is stored with its moderator before another report of it', async () => {
      const connection = connections.connect(CHANNEL);
      begin();
      await subscribed();
      await until(async () => (await statusOf(connection)) === 'connected');
      twitch.notify(CHANNEL, ...own);
      twitch.notify(CHANNEL, ...moderate);
      await until(() => records.of('twitch:moderation').length === 1);
      // The session gives up what it still holds.
      for (const worker of workers.splice(0)) await worker.stop();
      const [record, ...others] = records.of('twitch:moderation');
      expect(others).toEqual([]);
      const pushed = chatPush(readChatRecord(record!)!, { ...record!, occurred_at: record!.occurred_at });
      expect(pushed.map(({ event_type }) => event_type)).toEqual(['chat:delete', 'chat:moderation_log']);
      expect(JSON.parse(pushed[0]!.data)).toMatchObject({ deleted_by: 'mod' });
      expect(JSON.parse(pushed[1]!.data).data).toMatchObject({ moderator_id: '9', target_user_id: '7' });
    });

    test('a deletion whose moderator Twitch does not report is stored when the session ends', async () => {
      const connection = connections.connect(CHANNEL);
      begin();
      await subscribed();
      await until(async () => (await statusOf(connection)) === 'connected');
      twitch.notify(CHANNEL, ...own);
      twitch.notify(CHANNEL, 'channel.follow', follow('1'));
      await until(() => records.of('twitch:follower').length === 1);
      expect(records.of('twitch:moderation')).toEqual([]);
      for (const worker of workers.splice(0)) await worker.stop();
      expect(records.of('twitch:moderation')).toHaveLength(1);
    });

    test('a deletion whose moderator Twitch does not report is stored after a wait', async () => {
      const connection = connections.connect(CHANNEL);
      begin();
      await subscribed();
      await until(async () => (await statusOf(connection)) === 'connected');
      twitch.notify(CHANNEL, ...own);
      await until(() => records.of('twitch:moderation').length === 1);
    });

    test('a deletion is stored at once where Twitch refuses channel.moderate', async () => {
      twitch.refused.set('channel.moderate', { status: 403, message: 'subscription missing proper authorization' });
      const connection = connections.connect(CHANNEL);
      begin();
      await until(async () => (await statusOf(connection)) === 'degraded');
      twitch.notify(CHANNEL, ...own);
      twitch.notify(CHANNEL, 'channel.follow', follow('1'));
      await until(() => records.of('twitch:follower').length === 1);
      expect(records.of('twitch:moderation')).toHaveLength(1);
    });
  });

  test('that is disconnected is let go, with its row', async () => {
    const connection = connections.connect(CHANNEL);
    begin();
    await subscribed();
    connections.disconnect(connection);
    await until(() => twitch.sessions.size === 0);
    await until(async () => (await linkOf(t.db, connection)) === undefined);
  });

  describe('that is flagged to be connected again', () => {
    const flagged = async () => {
      const connection = connections.connect(CHANNEL);
      const online = { id: 's-1', broadcaster_user_id: CHANNEL, type: 'live', started_at: new Date().toISOString() };
      twitch.channel(CHANNEL).stream = { ...online, user_id: CHANNEL, user_login: 'us', user_name: 'Us' };
      begin();
      await subscribed();
      twitch.notify(CHANNEL, 'stream.online', online);
      await knowsStream(connection, 's-1');
      connections.flag(connection);
      await until(() => twitch.sessions.size === 0);
      await until(async () => (await statusOf(connection)) === 'reconnect_required');
      return connection;
    };

    test('keeps its state: after the next login it goes on, and the gap is shown', async () => {
      const connection = await flagged();
      expect((await linkOf(t.db, connection))!.missed_detail).toBeNull();
      const flagged_at = Date.now();
      connections.clear(connection);
      await subscribed();
      await until(async () => (await statusOf(connection)) === 'connected');
      await until(async () => (await linkOf(t.db, connection))!.missed_detail !== null);
      const { missed_from } = (await linkOf(t.db, connection))!;
      expect(Date.parse(missed_from!)).toBeLessThanOrEqual(flagged_at);
      expect(new Set(records.of('twitch:stream_online').map(({ external_id }) => external_id)).size).toBe(1);
    });

    test('is forgotten when its owner disconnects it', async () => {
      const connection = await flagged();
      connections.disconnect(connection);
      await until(async () => (await linkOf(t.db, connection)) === undefined);
    });
  });

  test('the last known state is that of the newest events, and of the broadcast that is on air', async () => {
    const account_id = uuid();
    const log = (type: string, id: string, minutes: number, external_id: string | null = null) =>
      t.db.query(
        `insert into platform_event_logs (id, account_id, type, platform, external_id, raw, created_at)
         values (gen_random_uuid(), $1, $2, 'twitch', $3, $4, now() - $5 * interval '1 minute')`,
        [account_id, `twitch:${type}`, external_id, JSON.stringify({ id }), minutes],
      );
    await log('poll', 'p-1', 9);
    await log('poll_end', 'p-1', 8, 'twitch:state:channel.poll.end:p-1:look-2');
    await log('poll', 'p-1', 7);
    await log('prediction_lock', 'r-1', 9);
    await log('prediction_end', 'r-1', 8);
    await log('hype_train', 'h-1', 9);
    await log('hype_train_end', 'h-1', 8, 'twitch:state:channel.hype_train.end:h-1:look-1');
    await t.db.query(
      `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, started_at, updated_at)
       values ($1, 'twitch', 's-1', $2, true, now(), now()), ($1, 'twitch', 's-0', $2, false, now(), now())`,
      [account_id, CHANNEL],
    );
    const lastKnown = createLastKnown(t.db);
    expect(await lastKnown({ connection_id: uuid(), account_id, channel_id: CHANNEL, kind: 'channel' })).toEqual({
      stream: 's-1',
      stream_at: null,
      poll: 'p-1',
      prediction: null,
      hype_train: null,
      goals: {},
      ended: ['prediction:r-1'],
      inferred: { 'poll:p-1': 2, 'hype_train:h-1': 1 },
    });
  });

  test('a broadcast is one event, whether EventSub or a look at Twitch reports it', async () => {
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    const online = { id: 's-9', broadcaster_user_id: CHANNEL, type: 'live', started_at: new Date().toISOString() };
    twitch.notify(CHANNEL, 'stream.online', online);
    await until(() => records.of('twitch:stream_online').length === 1);
    const [record] = records.of('twitch:stream_online');
    expect(record!.external_id).toBe('twitch:state:stream.online:s-9');
    expect(record).toMatchObject({ reported_at: expect.any(String) });
    expect(record!.seen_at).toBeUndefined();
  });

  test('what is older than ten minutes by Twitch’s own clock is dropped, however wrong ours is', async () => {
    twitch.skew_ms = -3_600_000;
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    const minutesAgo = (minutes: number) => new Date(Date.now() + twitch.skew_ms - minutes * 60_000).toISOString();
    twitch.notify(CHANNEL, 'channel.follow', follow('old'), { message_timestamp: minutesAgo(11) });
    twitch.notify(CHANNEL, 'channel.follow', follow('new'), { message_timestamp: minutesAgo(9) });
    await until(() => records.of('twitch:follower').length === 1);
    expect(records.of('twitch:follower')[0]!.subject).toBe('twitch:new');
  });

  test.each([null, '', 0, '0001-01-01T00:00:00Z'])('a notification sent at %p has no known age', async (sent_at) => {
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    twitch.notify(CHANNEL, 'channel.follow', follow('new'), { message_timestamp: sent_at });
    await until(() => records.of('twitch:follower').length === 1);
  });

  test('what is said while the log is away waits, and is stored in its order', async () => {
    connections.connect(CHANNEL);
    begin();
    await subscribed();
    records.away = new EngineUnavailable('the log', new Error('connection refused'));
    const users = Array.from({ length: 50 }, (_, n) => String(n + 1));
    for (const user of users) twitch.notify(CHANNEL, 'channel.follow', follow(user));
    await until(() => records.refused > 1);
    expect(records.of('twitch:follower')).toEqual([]);
    records.away = null;
    await until(() => records.of('twitch:follower').length === users.length);
    expect(records.of('twitch:follower').map(({ subject }) => subject)).toEqual(users.map((user) => `twitch:${user}`));
  });

  test('what is no frame of Twitch’s is parked, and the session goes on', async () => {
    connections.connect(CHANNEL);
    const log = keptLog();
    begin(log);
    await subscribed();
    for (const text of ['{', '[]', '{"metadata":{"message_type":"notification"}}', '"x"']) twitch.frame(CHANNEL, text);
    twitch.notify(CHANNEL, 'channel.follow', follow('1'));
    await until(() => records.of('twitch:follower').length === 1);
    const parked = () => t.db.query('select reason from ingest_dead_letters order by reason');
    await until(async () => (await parked()).length === 4);
    expect((await parked()).map(({ reason }) => reason)).toEqual(['bad_json', ...Array(3).fill('bad_payload')]);
    expect(log.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('that nobody listened to between two workers is said to have missed something', async () => {
    const connection = connections.connect(CHANNEL);
    const first = begin();
    await subscribed();
    await until(async () => (await statusOf(connection)) === 'connected');
    await first.stop();
    expect(twitch.sessions.size).toBe(0);
    begin();
    await until(async () => (await linkOf(t.db, connection))?.missed_detail !== null);
  });

  test('whose successor comes up later than the worker before reads on is said to have missed something', async () => {
    const connection = connections.connect(CHANNEL);
    const hasty = { ...QUICK, handover_ms: 1, stop_handover_ms: 1 };
    const first = begin(silentLog, hasty);
    await subscribed();
    await until(async () => (await statusOf(connection)) === 'connected');
    begin(silentLog, hasty);
    await first.stop();
    await until(async () => (await linkOf(t.db, connection))?.missed_detail !== null);
  });

  test('that is looked back on is read on until another worker reads it', async () => {
    connections.connect(CHANNEL);
    twitch.fail({ path: '/helix/streams', status: 503, retry_after: 1 });
    const first = begin(silentLog, patient);
    await until(() => twitch.asked('/helix/streams') === 1);
    // The other one is subscribed later than this one has looked back.
    twitch.fail({ path: '/helix/eventsub', status: 503, retry_after: 2 });
    let sent = 0;
    const timer = setInterval(() => {
      sent += 1;
      if (twitch.notify(CHANNEL, 'channel.follow', follow(String(sent))) === 0) clearInterval(timer);
    }, 5);
    begin(silentLog, patient);
    const offering = () => t.db.query("select 1 as one from work_members where 'twitch' = any (kinds)");
    await until(async () => (await offering()).length === 2);
    await first.stop();
    clearInterval(timer);
    await until(() => records.counted('twitch:follower').length >= sent);
    const users = records.counted('twitch:follower').map(({ subject }) => Number(subject!.slice('twitch:'.length)));
    expect(users.sort((one, other) => one - other)).toEqual(Array.from({ length: sent }, (_, n) => n + 1));
  });

  test('a second worker takes its share without a gap, and all of it when the first one stops', async () => {
    const channels = ['1', '2', '3', '4'];
    const connected = channels.map((id) => connections.connect(id));
    const first = begin(silentLog, patient);
    for (const one of connected) await until(async () => (await statusOf(one)) === 'connected');
    let sent = 0;
    const told: string[] = [];
    const timer = setInterval(() => {
      for (const id of channels) {
        const user = String((sent += 1));
        if (twitch.notify(id, 'channel.follow', { ...follow(user), broadcaster_user_id: id }) > 0) told.push(user);
      }
    }, 5);
    const second = begin(silentLog, patient);
    await until(() => second.held() === 2 && first.held() === 2);
    for (const id of channels) await until(() => twitch.subscriptionsOf(id).length >= SUBSCRIPTIONS.length);
    await first.stop();
    workers.shift();
    await until(() => second.held() === 4);
    for (const id of channels) await subscribed(id);
    clearInterval(timer);
    await until(() =>
      told.every((user) => records.of('twitch:follower').some(({ subject }) => subject === `twitch:${user}`)),
    );
    expect(told).toHaveLength(sent);
    expect(
      records
        .counted('twitch:follower')
        .map(({ subject }) => subject)
        .sort(),
    ).toEqual(told.map((user) => `twitch:${user}`).sort());
    for (const one of connected) expect(await linkOf(t.db, one)).toMatchObject({ missed_detail: null });
  });
});
