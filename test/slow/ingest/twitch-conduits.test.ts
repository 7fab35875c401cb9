import { createLocalWakeups } from '../../../engines/wakeups/local';
import { SUBSCRIPTIONS } from '../../../ingest/twitch/subscriptions';
import { twitchOAuth } from '../../../vendors/twitch/oauth';
import { type TestDatabase, testDatabase } from '../../support/database';
import { silentLog } from '../../support/log';
import { linkOf, MemoryRecords, QUICK, startWorker, TestConnections, type TestWorker } from '../../support/twitch';
import { until } from '../../support/projections';
import { FakeTwitch } from '../../vendors/twitch-cloud';

const CHANNEL = '1337';
const SHARDS = 2;
/** What owners consent to today, and before `user:bot` was asked for. */
const SCOPES = twitchOAuth({ client: () => ({}) } as never, { id_url: 'http://a', api_url: 'http://a' }).scopes(
  'channel',
);
const WITHOUT_BOT = SCOPES.filter((scope) => scope !== 'user:bot');
/** Reported by `channel.moderate` as well: not made where that is. */
const UNNECESSARY = ['channel.ban', 'channel.unban', 'channel.chat.message_delete'];
const OVER_CONDUIT = SUBSCRIPTIONS.length - UNNECESSARY.length;

/** Has no id of its own: two subscriptions to it are two events. */
const cheer = (bits: number) => ({
  ...{ broadcaster_user_id: CHANNEL, user_id: '7', user_login: 'seven', user_name: 'Seven' },
  ...{ is_anonymous: false, message: '', bits },
});
const follow = (user_id: string) => ({
  ...{ user_id, user_login: `viewer_${user_id}`, user_name: `Viewer_${user_id}` },
  ...{ broadcaster_user_id: CHANNEL, followed_at: new Date().toISOString() },
});
const said = (message_id: string) => ({
  ...{ broadcaster_user_id: CHANNEL, chatter_user_id: '9', chatter_user_login: 'nine', chatter_user_name: 'Nine' },
  ...{ message_id, message: { text: message_id, fragments: [] }, message_type: 'text', badges: [], color: '' },
});

/** Raids to a channel and those from it are one type. */
const raidsOf = (condition: object) =>
  Object.keys(condition)
    .filter((key) => key.startsWith('from_'))
    .join();

describe('a channel on Twitch over a conduit', () => {
  let t: TestDatabase;
  let twitch: FakeTwitch;
  let connections: TestConnections;
  let records: MemoryRecords;
  let wakeups = createLocalWakeups();
  const workers: TestWorker[] = [];
  const killed: TestWorker[] = [];

  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(() => t.drop());
  beforeEach(async () => {
    twitch = await new FakeTwitch().start();
    connections = new TestConnections(twitch);
    records = new MemoryRecords();
    wakeups = createLocalWakeups();
  });
  afterEach(async () => {
    await Promise.all([...workers.splice(0), ...killed.splice(0)].map((worker) => worker.stop()));
    await twitch.close();
    for (const table of ['work_members', 'work_holds', 'leases', 'twitch_conduits', 'twitch_conduit_subscriptions'])
      await t.db.query(`delete from ${table}`);
    await t.db.query('delete from adapter_links');
  });

  function begin({ timings = QUICK, ...others }: Partial<Parameters<typeof startWorker>[0]> = {}): TestWorker {
    const given = { db: t.db, url: t.url, twitch, connections, records, log: silentLog, wakeups };
    const worker = startWorker({ ...given, conduit_shards: SHARDS, timings, ...others });
    workers.push(worker);
    return worker;
  }
  // However slow the machine is, the former holder reads until the next one does.
  const patient = { ...QUICK, handover_ms: 60_000, stop_handover_ms: 60_000 };
  const covered = (channel_id = CHANNEL, count = OVER_CONDUIT) =>
    until(() => twitch.conduits.of(channel_id).length === count && twitch.conduits.connected === SHARDS);
  /** Sockets that are no shards. */
  const ownSockets = () => [...twitch.sessions.keys()].filter((id) => !twitch.conduits.uses(id)).length;
  const cheers = () => records.counted('twitch:cheer');

  const callsTo = (method: string, path: string) =>
    twitch.calls.filter((call) => call.method === method && call.path === path).length;
  const callsNow = () => ({
    subscribed: callsTo('POST', '/helix/eventsub/subscriptions'),
    assigned: callsTo('PATCH', '/helix/eventsub/conduits/shards'),
  });
  /** Processes that hold a shard. */
  const holders = async () => {
    const rows = await t.db.query<{ holder: string }>(
      `select holder from adapter_links
       where link like 'twitch-conduit:%' and status = 'connected' and state_token = token`,
    );
    return new Set(rows.map(({ holder }) => holder));
  };
  /** Every cheer that was sent is stored, and none twice. */
  async function eachOnce(n: number): Promise<void> {
    await until(() => cheers().length >= n);
    const bits = cheers().map(({ raw }) => (JSON.parse(raw) as { bits: number }).bits);
    expect(bits.sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i + 1));
  }
  /** Kills a worker that holds so many of the shards that were assigned first. */
  async function kill(worker: TestWorker, shards: number): Promise<void> {
    killed.push(...workers.splice(workers.indexOf(worker), 1));
    const own = [...twitch.sessions.values()].slice(0, shards);
    await worker.kill();
    for (const { ws } of own) ws.terminate();
    await until(() => own.every(({ id }) => !twitch.sessions.has(id)));
  }

  test('is received over the shards alone where its owner has consented to that', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    await until(async () => (await linkOf(t.db, connection))?.status === 'connected' && ownSockets() === 0);
    expect(twitch.notify(CHANNEL, 'channel.follow', follow('1'))).toBe(1);
    expect(twitch.notify(CHANNEL, 'channel.cheer', cheer(5))).toBe(1);
    expect(twitch.notify(CHANNEL, 'channel.chat.message', said('m-1'))).toBe(1);
    await until(() => records.of('twitch:follower').length === 1 && cheers().length === 1);
    await until(() => records.of('twitch:chat').length === 1);
    expect(cheers()[0]).toMatchObject({ account_id: connection.account_id, platform: 'twitch', subject: 'twitch:7' });
    expect(records.of('twitch:follower')[0]!.external_id).toMatch(/^twitch:state:channel\.follow:1:/);
    expect(twitch.inbound).toBe(0);
  });

  test('keeps its chat on a socket of its own until the owner consents again', async () => {
    connections.connect('1', SCOPES);
    begin();
    await covered('1');
    connections.connect(CHANNEL, WITHOUT_BOT);
    const own = () => twitch.of(CHANNEL).flatMap(({ subscriptions }) => [...subscriptions.values()]);
    await until(() => own().length > 0 && own().length + twitch.conduits.of(CHANNEL).length === SUBSCRIPTIONS.length);
    expect(own().map(({ type }) => type)).toEqual(expect.arrayContaining(['channel.chat.message', 'channel.moderate']));
    expect(own().map(({ type }) => type)).not.toContain('channel.cheer');
    expect(twitch.notify(CHANNEL, 'channel.chat.message', said('m-1'))).toBe(1);
    expect(twitch.notify(CHANNEL, 'channel.cheer', cheer(5))).toBe(1);
    await until(() => records.of('twitch:chat').length === 1 && cheers().length === 1);
  });

  test('that a socket receives already is covered without a gap, and nothing counts twice', async () => {
    const connection = connections.connect(CHANNEL, WITHOUT_BOT);
    const socket = begin({ conduit_shards: undefined, timings: patient });
    await until(() => twitch.subscriptionsOf(CHANNEL).length === SUBSCRIPTIONS.length);
    let n = 0;
    const sending = setInterval(() => twitch.notify(CHANNEL, 'channel.cheer', cheer((n += 1))), 5);
    await until(async () => (await linkOf(t.db, connection))?.status === 'connected');
    begin({ timings: patient });
    const offering = `select 1 as one from work_members where kinds @> '{twitch,twitch-conduit-workers}'`;
    await until(async () => (await t.db.query(offering)).length === 1);
    await workers.splice(workers.indexOf(socket), 1)[0]!.stop();
    await until(() => twitch.conduits.of(CHANNEL).some(({ type }) => type === 'channel.cheer'));
    await until(() => twitch.notify(CHANNEL, 'channel.cheer', cheer((n += 1))) === 2);
    clearInterval(sending);
    await eachOnce(n);
  });

  test('goes over to the other worker with the shards of one that stops: no subscription is made, nothing is lost', async () => {
    connections.connect(CHANNEL, SCOPES);
    const first = begin({ timings: patient });
    await covered();
    await until(() => ownSockets() === 0);
    const before = callsNow();
    let n = 0;
    const sending = setInterval(() => twitch.notify(CHANNEL, 'channel.cheer', cheer((n += 1))), 5);
    begin({ timings: patient });
    await until(() => twitch.sessions.size > SHARDS || holders().then((all) => all.size === 2));
    await workers.splice(workers.indexOf(first), 1)[0]!.stop();
    await until(async () => (await holders()).size === 1 && twitch.sessions.size === SHARDS);
    clearInterval(sending);
    await eachOnce(n);
    expect(twitch.conduits.lost).toBe(0);
    // Each shard was assigned to a socket of the other worker, once, and that is all.
    expect(callsNow()).toEqual({ ...before, assigned: before.assigned + SHARDS });
  });

  test('has its shards back when a worker is killed, and is received over the others meanwhile', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    const first = begin();
    await covered();
    begin();
    await until(async () => (await holders()).size === 2 && twitch.sessions.size === SHARDS);
    await kill(first, 1);
    let n = 0;
    const sending = setInterval(() => twitch.notify(CHANNEL, 'channel.cheer', cheer((n += 1))), 5);
    await until(async () => (await holders()).size === 1 && twitch.conduits.connected === SHARDS);
    clearInterval(sending);
    await eachOnce(n);
    expect(twitch.conduits.lost).toBe(0);
    expect((await linkOf(t.db, connection))!.missed_detail).toBeNull();
    const told = () =>
      t.db.query(`select link from adapter_links where link like 'twitch-conduit:%' and missed_detail is not null`);
    await until(async () => (await told()).length === 1);
  });

  test('is said to have a gap when no shard was connected, and is not subscribed again', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    const first = begin();
    await covered();
    await until(() => ownSockets() === 0);
    const { subscribed } = callsNow();
    await kill(first, SHARDS);
    expect(twitch.notify(CHANNEL, 'channel.cheer', cheer(1))).toBe(0);
    twitch.channel(CHANNEL).goals = [{ id: 'g-1', type: 'follower', current_amount: 7, target_amount: 10 }];
    begin();
    await covered();
    const link = await until(async () => {
      const found = await linkOf(t.db, connection);
      return found?.missed_detail !== null && found;
    });
    expect(link).toMatchObject({ status: 'connected', missed_detail: expect.stringContaining('raids') });
    await until(() => records.of('twitch:goal').length === 1);
    expect(callsNow().subscribed).toBe(subscribed);
    const [{ gaps }] = (await t.db.query('select gaps from twitch_conduits')) as [{ gaps: number }];
    expect(gaps).toBe(1);
  });

  test('is reported offline, and its poll over, when both ended while no shard was connected', async () => {
    const { account_id } = connections.connect(CHANNEL, SCOPES);
    const first = begin();
    await covered();
    await until(() => ownSockets() === 0);
    const poll = { id: 'p-1', title: 'Which?', choices: [], started_at: new Date().toISOString(), duration: 60 };
    const log = (type: string, raw: object) =>
      t.db.query(
        `insert into platform_event_logs (id, account_id, type, platform, raw, created_at)
         values (gen_random_uuid(), $1, $2, 'twitch', $3, clock_timestamp())`,
        [account_id, type, JSON.stringify({ broadcaster_user_id: CHANNEL, ...raw })],
      );
    await t.db.query(
      `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, started_at, updated_at)
       values ($1, 'twitch', 's-1', $2, true, now(), now())`,
      [account_id, CHANNEL],
    );
    await log('twitch:poll', poll);
    await log('twitch:prediction', { id: 'r-1' });
    await log('twitch:prediction_end', { id: 'r-1' });
    await kill(first, SHARDS);
    twitch.channel(CHANNEL).polls = [{ ...poll, status: 'COMPLETED', ended_at: new Date().toISOString() }];
    twitch.channel(CHANNEL).predictions = [{ id: 'r-1', status: 'RESOLVED', outcomes: [] }];
    begin();
    await until(() => records.of('twitch:stream_offline').length === 1 && records.of('twitch:poll_end').length === 1);
    expect(records.of('twitch:stream_offline')[0]!.external_id).toBe('twitch:state:stream.offline:s-1');
    expect(records.of('twitch:prediction_end')).toEqual([]);
  });

  test('is received again when Twitch has ended the conduit, and the gap is told', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    const [ended] = [...twitch.conduits.all.keys()];
    twitch.conduits.all.clear();
    await covered();
    expect([...twitch.conduits.all.keys()]).not.toContain(ended);
    expect(twitch.conduits.all.size).toBe(1);
    await until(async () => (await linkOf(t.db, connection))!.missed_detail !== null && ownSockets() === 0);
    expect(twitch.notify(CHANNEL, 'channel.cheer', cheer(1))).toBe(1);
    await eachOnce(1);
    expect((await t.db.query('select distinct conduit_id from twitch_conduit_subscriptions')).length).toBe(1);
  });

  test('is received once when the worker is killed that subscribes it', async () => {
    const MADE = 5;
    twitch.conduits.allowed = MADE;
    const connection = connections.connect(CHANNEL, SCOPES);
    const first = begin();
    await until(() => twitch.conduits.of(CHANNEL).length === MADE && twitch.conduits.connected === SHARDS);
    await kill(first, twitch.sessions.size);
    // Killed between Twitch's answer and its own note of one of them.
    await t.db.query(
      `update twitch_conduit_subscriptions set subscription_id = null, since = null, asked = true
       where name = (select min(name) from twitch_conduit_subscriptions where subscription_id is not null)`,
    );
    begin();
    const own = () => twitch.of(CHANNEL).flatMap(({ subscriptions }) => [...subscriptions.values()]);
    await until(async () => own().length > 0 && (await linkOf(t.db, connection))?.status === 'connected');
    const both = [...twitch.conduits.of(CHANNEL), ...own()].map(({ type, condition }) => type + raidsOf(condition));
    expect(both).toHaveLength(SUBSCRIPTIONS.length);
    expect(new Set(both).size).toBe(both.length);
  });

  test('is received over a socket alone while a worker without conduits lives, and keeps its subscriptions', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    await until(() => ownSockets() === 0);
    const { subscribed } = callsNow();
    const other = begin({ conduit_shards: undefined });
    await until(() => twitch.conduits.connected === 0 && twitch.subscriptionsOf(CHANNEL).length > 0);
    await until(async () => (await linkOf(t.db, connection))!.missed_detail !== null);
    await until(() => twitch.notify(CHANNEL, 'channel.cheer', cheer(1)) === 1);
    await eachOnce(1);
    await until(() => twitch.subscriptionsOf(CHANNEL).length === SUBSCRIPTIONS.length);
    const sockets = callsNow().subscribed - subscribed;
    await workers.splice(workers.indexOf(other), 1)[0]!.stop();
    await covered();
    await until(() => ownSockets() === 0);
    expect(twitch.notify(CHANNEL, 'channel.cheer', cheer(2))).toBe(1);
    await eachOnce(2);
    expect(callsTo('POST', '/helix/eventsub/conduits')).toBe(1);
    expect(sockets).toBeGreaterThanOrEqual(SUBSCRIPTIONS.length);
    const own = twitch.calls.filter(
      ({ method, path, body }) =>
        method === 'POST' && path === '/helix/eventsub/subscriptions' && body.includes('"conduit"'),
    );
    expect(own).toHaveLength(OVER_CONDUIT);
  });

  test('has no conduit any more when a worker without conduits stays for hours', async () => {
    connections.connect(CHANNEL, SCOPES);
    begin({ conduit_paused_ms: 100 });
    await covered();
    const other = begin({ conduit_shards: undefined });
    await until(() => twitch.conduits.all.size === 0 && twitch.subscriptionsOf(CHANNEL).length > 0);
    await until(async () => (await t.db.query('select 1 from twitch_conduits')).length === 0);
    await workers.splice(workers.indexOf(other), 1)[0]!.stop();
    await covered();
    expect(callsTo('POST', '/helix/eventsub/conduits')).toBe(2);
  });

  test('has one conduit whoever starts at once', async () => {
    connections.connect(CHANNEL, SCOPES);
    for (let n = 0; n < 3; n += 1) begin();
    await covered();
    expect(twitch.conduits.all.size).toBe(1);
    expect(callsTo('POST', '/helix/eventsub/conduits')).toBe(1);
  });

  test('has the conduit that a worker had asked for before it was killed', async () => {
    await t.db.query(`insert into twitch_conduits (client_id, shard_count, others) values ('twitch-client', 0, '{}')`);
    twitch.conduits.make({ body: JSON.stringify({ shard_count: SHARDS }) } as never);
    connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    expect(twitch.conduits.all.size).toBe(1);
  });

  test('is subscribed again where Twitch has lost a subscription; a stranger’s is ended', async () => {
    connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    const [conduit] = [...twitch.conduits.all.values()];
    conduit!.subscriptions.delete([...conduit!.subscriptions.keys()][3]!);
    const condition = { broadcaster_user_id: '404' };
    const stray = { id: 'stray', type: 'channel.update', version: '2', condition, created_at: '2026-01-01T00:00:00Z' };
    conduit!.subscriptions.set('stray', stray);
    await t.db.query(
      `insert into twitch_conduit_subscriptions (conduit_id, channel_id, name, seen_at, changed_at)
       values ($1, '404', 'channel.update', now(), now())`,
      [conduit!.id],
    );
    await until(() => twitch.conduits.of('404').length === 0);
    await covered();
  });

  const pagesListed = () =>
    twitch.calls.filter(
      ({ method, path, query }) =>
        method === 'GET' && path === '/helix/eventsub/subscriptions' && query.get('user_id') === null,
    );

  test('keeps a subscription that a page has not listed, if Twitch lists it for the channel', async () => {
    connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    await until(() => ownSockets() === 0);
    twitch.conduits.unlisted.add(twitch.conduits.of(CHANNEL)[3]!.id);
    const [{ subscribed }, pages] = [callsNow(), pagesListed().length];
    await until(() => pagesListed().length > pages + 3);
    expect(callsNow().subscribed).toBe(subscribed);
  });

  test('is compared from the page that failed', async () => {
    twitch.conduits.failing.set('100', 4);
    for (const channel_id of ['1', '2', '3', '4']) connections.connect(channel_id, SCOPES);
    begin();
    const cursors = () => pagesListed().map(({ query }) => query.get('after') ?? 'first');
    await until(() => twitch.conduits.failing.get('100') === 0);
    const failed = cursors().indexOf('100');
    await until(() => cursors().length > failed + 4);
    expect(cursors().slice(failed, failed + 5)).toEqual(Array.from({ length: 5 }, () => '100'));
  });

  test('leaves no rows of a former app whose conduit Twitch has ended', async () => {
    const row = (client_id: string, days: number) =>
      t.db.query(
        `insert into twitch_conduits (client_id, conduit_id, shard_count, checked_at)
         values ($1, $1, 2, now() - $2 * interval '1 day')`,
        [client_id, days],
      );
    await row('former', 5);
    await row('recent', 1);
    await t.db.query(
      `insert into twitch_conduit_subscriptions (conduit_id, channel_id, name, seen_at, changed_at)
       select client_id, '404', 'channel.follow', now(), now() from twitch_conduits`,
    );
    connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    const former = async () => {
      const [kept] = await t.db.query<{ apps: string; owners: string }>(
        `select (select string_agg(client_id, ' ' order by client_id) from twitch_conduits) as apps,
           (select string_agg(conduit_id, ' ') from twitch_conduit_subscriptions where channel_id = '404') as owners`,
      );
      return kept;
    };
    await until(async () => (await former())?.apps === 'recent twitch-client');
    expect((await former())?.owners).toBe('recent');
  });

  test('is flagged when its owner withdraws the consent, and ends with its connection', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    connections.failing_reports = 1;
    twitch.revoke(CHANNEL, 'authorization_revoked', 'stream.online');
    await until(() => connections.refused.length === 1);
    expect(connections.refused[0]).toEqual({
      connection_id: connection.connection_id,
      reason: 'authorization_revoked',
    });
    connections.disconnect(connection);
    await until(async () => {
      // Young ones are kept; the session may still write some.
      await t.db.query(`update twitch_conduit_subscriptions set changed_at = now() - interval '1 hour'`);
      return twitch.conduits.of(CHANNEL).length === 0;
    });
  });

  test('keeps its subscriptions while the list of connections is not complete', async () => {
    const connection = connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    connections.behind = true;
    const checksNow = async () =>
      (await t.db.query<{ checks: number }>('select checks from twitch_conduits'))[0]!.checks;
    connections.disconnect(connection);
    const checks = await checksNow();
    // Young ones are kept; the session may still write some.
    const age = () => t.db.query(`update twitch_conduit_subscriptions set changed_at = now() - interval '1 hour'`);
    await until(async () => {
      await age();
      return (await checksNow()) > checks + 3;
    });
    expect(twitch.conduits.of(CHANNEL)).toHaveLength(OVER_CONDUIT);
    connections.behind = false;
    await until(async () => {
      await age();
      return twitch.conduits.of(CHANNEL).length === 0;
    });
  });

  test('keeps its shards and subscriptions while a copy of the database is started elsewhere', async () => {
    connections.connect(CHANNEL, SCOPES);
    begin();
    await covered();
    const copy = await testDatabase();
    try {
      for (const table of ['twitch_conduits', 'twitch_conduit_subscriptions', 'adapter_links']) {
        const rows = await t.db.query(`select * from ${table}`);
        await copy.db.query(`insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::jsonb)`, [
          JSON.stringify(rows),
        ]);
      }
      await copy.db.query(`update adapter_links set heard_at = heard_at - interval '1 hour'`);
      const others = new TestConnections(twitch);
      others.connect(CHANNEL, SCOPES);
      // Later than the copy, and connected long ago when the copy is started.
      connections.connect('2', SCOPES);
      await covered('2');
      for (const one of twitch.conduits.of('2')) one.created_at = '2026-01-01T00:00:00Z';
      const before = callsNow();
      const clone = begin({ ...{ db: copy.db, url: copy.url, connections: others, wakeups: createLocalWakeups() } });
      const refusing = `select 1 as one from adapter_links
        where link like 'twitch-conduit:%' and detail like '%another installation%'`;
      await until(async () => (await copy.db.query(refusing)).length === SHARDS);
      await until(async () => /_shards\{[^}]*which="foreign"[^}]*\} 2/.test(await clone.metrics()));
      const checks = async () =>
        (await copy.db.query<{ checks: number }>('select checks from twitch_conduits'))[0]!.checks;
      const had = await checks();
      await until(async () => (await checks()) > had + 3);
      expect(callsNow()).toEqual(before);
      expect(twitch.conduits.of('2')).toHaveLength(OVER_CONDUIT);
      expect(callsTo('DELETE', '/helix/eventsub/subscriptions')).toBe(0);
      // Twitch lists the shards of an installation that has ended as disconnected.
      await workers.shift()!.stop();
      await until(() => twitch.conduits.connected === SHARDS);
      await workers.pop()!.stop();
    } finally {
      await copy.drop();
    }
  });

  test('is received over a socket while the app may make no more calls', async () => {
    connections.connect('1', SCOPES);
    begin();
    await covered('1');
    twitch.conduits.allowed = 3;
    connections.connect(CHANNEL, SCOPES);
    await until(() => twitch.subscriptionsOf(CHANNEL).filter(({ type }) => type === 'channel.cheer').length === 1);
    expect(twitch.notify(CHANNEL, 'channel.cheer', cheer(1))).toBe(1);
    await eachOnce(1);
    twitch.conduits.allowed = Infinity;
    await covered();
    await until(() => ownSockets() === 0);
  });
});
