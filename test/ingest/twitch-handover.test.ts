import type { LinkedConnection } from '../../ingest/runtime/connection/adapter';
import { createLinkLeases } from '../../ingest/runtime/connection/link-leases';
import { LinkStore } from '../../ingest/runtime/connection/link-store';
import { TIMINGS } from '../../ingest/runtime/connection/link-timings';
import { VendorConnection } from '../../ingest/runtime/connection/vendor-connection';
import { createTwitchAdapter } from '../../ingest/twitch/adapter';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import type { Database } from '../../engines/postgres/port';
import { pause } from '../../lib/async/signal';
import { createHttpClients } from '../../vendors/http/client';
import { createTwitch } from '../../vendors/twitch/api';
import type { Twitch } from '../../vendors/twitch/port';
import { type TestDatabase, testDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { testParked } from '../support/parked';
import { until } from '../support/projections';
import { MemoryRecords, QUICK, TestConnections } from '../support/twitch';
import { FakeTwitch, TWITCH_CLIENT } from '../vendors/twitch-cloud';

const CHANNEL = '1337';
const CHEER = 'channel.cheer';
const SECOND_MS = 1_000;
const TIMING = { ...TIMINGS, ...QUICK, handover_ms: 60_000, read_on_ms: 0 };

describe('a channel that two processes receive', () => {
  let t: TestDatabase;
  let twitch: FakeTwitch;
  let connections: TestConnections;
  let connection: LinkedConnection;
  let records: MemoryRecords;
  const metrics = createPrometheusMetrics({ service: 'lumio', env: 'test' });
  const http = createHttpClients({ metrics, allow_loopback: true });
  const held: { link: VendorConnection; running: Promise<void> }[] = [];

  beforeAll(async () => {
    t = await testDatabase();
  });
  afterAll(async () => {
    await http.close();
    await t.drop();
  });
  beforeEach(async () => {
    twitch = await new FakeTwitch().start();
    connections = new TestConnections(twitch);
    connection = connections.connect(CHANNEL);
    records = new MemoryRecords();
  });
  afterEach(async () => {
    for (const { link } of held) await link.close();
    await Promise.all(held.splice(0).map(({ running }) => running));
    await twitch.close();
  });

  const eventSub = () =>
    createTwitch(http, {
      ...{ api_url: twitch.base_url, id_url: twitch.base_url, eventsub_url: twitch.eventsub_url },
      allow_loopback: true,
    });

  /** Takes the connection, and opens it. */
  async function take(
    db: Database = t.db,
    client: Twitch = eventSub(),
    stopsReadingAt = () => Infinity,
  ): Promise<VendorConnection> {
    const leases = createLinkLeases(db, { lock: 1 });
    const store = new LinkStore({ records: records as never, leases, parked: testParked(db), log: silentLog, metrics });
    const adapter = createTwitchAdapter({ twitch: client, client_id: TWITCH_CLIENT, metrics });
    const link = new VendorConnection(adapter, connection, await leases.take('twitch', connection), {
      ...{ leases, store, log: silentLog, timings: TIMING, stopsReadingAt },
      token: (one, refused) => connections.token(one, refused),
      refused: () => Promise.resolve(),
      missed: metrics.counter('gaps', 'gaps', ['vendor']),
      sessions: metrics.counter('sessions', 'sessions', ['vendor']),
    });
    held.push({ link, running: link.run() });
    return link;
  }

  /** Waits until the present holder has opened everything; returns its session at Twitch. */
  async function opened(): Promise<string> {
    return until(async () => {
      const [row] = await t.db.query<{ session_id: string }>(
        `select state ->> 'session_id' as session_id from adapter_links
         where connection_id = $1 and status = 'connected' and state_token = token`,
        [connection.connection_id],
      );
      return row !== undefined && twitch.sessions.has(row.session_id) && row.session_id;
    });
  }

  /** Creation time of a session's subscription to cheers, Unix milliseconds. */
  const startOf = (session_id: string): number => {
    const subscriptions = [...twitch.sessions.get(session_id)!.subscriptions.values()];
    return Date.parse(subscriptions.find(({ type }) => type === CHEER)!.created_at);
  };

  /** Sends a cheer to the sessions at these times; returns the number of sessions that received it. */
  const cheerAt = (user_id: string, times: Readonly<Record<string, number>>): number =>
    twitch.notify(CHANNEL, CHEER, { user_id, broadcaster_user_id: CHANNEL, bits: 100 }, ({ id }) =>
      times[id] === undefined ? null : { message_timestamp: new Date(times[id]).toISOString() },
    );
  /** Sends a cheer to all sessions. */
  const cheer = (user_id: string): number =>
    twitch.notify(CHANNEL, CHEER, { user_id, broadcaster_user_id: CHANNEL, bits: 100 });

  /** Number of events that count, by user. */
  const counts = (): Record<string, number> => {
    const numbers: Record<string, number> = {};
    for (const { subject } of records.counted('twitch:cheer')) {
      const user_id = subject!.replace('twitch:', '');
      numbers[user_id] = (numbers[user_id] ?? 0) + 1;
    }
    return numbers;
  };

  /** Twitch's clock moves on, so that the next messages are far from earlier subscriptions. */
  const laterAtTwitch = () => (twitch.skew_ms += 5 * SECOND_MS);

  /** A database that this process alone does not reach after `cut`. */
  function cuttable() {
    let is_cut = false;
    const db = new Proxy(t.db, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...values: unknown[]): unknown =>
          is_cut ? Promise.reject(new Error('the database is unavailable')) : value.apply(target, values);
      },
    });
    return { db: db as Database, cut: () => (is_cut = true), mend: () => (is_cut = false) };
  }

  test('stores each event once at a handover, on whichever side of the boundary its two times lie', async () => {
    const former = await take();
    const before = await opened();
    await former.announce(performance.now() + TIMING.handover_ms);
    await take();
    const after = await opened();
    const start = startOf(after);
    const at = (former_ms: number | null, successor_ms: number | null) => ({
      ...(former_ms !== null && { [before]: start + former_ms }),
      ...(successor_ms !== null && { [after]: start + successor_ms }),
    });
    const sent = [
      cheerAt('1', at(-300, 300)),
      cheerAt('2', at(300, -300)),
      // Two equal cheers, each received by both.
      cheerAt('3', at(100, 150)),
      cheerAt('3', at(160, 110)),
      // The successor receives only the second one of two equal cheers.
      cheerAt('4', at(-500, null)),
      cheerAt('4', at(500, 600)),
      cheerAt('5', at(950, 1_100)),
      cheerAt('6', at(-500, null)),
      cheerAt('6', at(1_400, 1_500)),
      cheerAt('7', at(-5 * SECOND_MS, null)),
      cheerAt('8', at(5 * SECOND_MS, 5 * SECOND_MS + 200)),
      cheerAt('9', at(5 * SECOND_MS, 5 * SECOND_MS)),
      cheerAt('9', at(6 * SECOND_MS, 6 * SECOND_MS)),
    ];
    expect(sent.reduce((sum, sessions) => sum + sessions, 0)).toBe(23);
    await former.handOver(() => Infinity);
    await until(() => '9' in counts());
    expect(counts()).toEqual({ 1: 1, 2: 1, 3: 2, 4: 2, 5: 1, 6: 2, 7: 1, 8: 1, 9: 2 });
  });

  test('stores each event once when the former holder was cut off from the database, and opened its session again', async () => {
    const { db, cut, mend } = cuttable();
    const former = await take(db);
    const first = await opened();
    cut();
    expect(cheer('1')).toBe(1);
    laterAtTwitch();
    await take();
    await opened();
    laterAtTwitch();
    expect(cheer('2')).toBe(2);
    twitch.dropSession(first);
    await until(() => cheer('3') === 2);
    // It looks back when its new session is completely open.
    await until(() => twitch.asked('/helix/streams') === 3);
    laterAtTwitch();
    for (const user of ['4', '5', '5']) expect(cheer(user)).toBe(2);
    await until(() => counts()[5] === 2);
    mend();
    await former.close();
    const { 3: third, ...others } = counts();
    expect(others).toEqual({ 1: 1, 2: 1, 4: 1, 5: 2 });
    expect(third).toBeGreaterThan(0);
  });

  test('stores each event once when the first session of a successor ends before it is completely open', async () => {
    const { db, cut, mend } = cuttable();
    const former = await take(db);
    const first = await opened();
    cut();
    laterAtTwitch();
    // The first session opens in part; the second one begins when the test lets it.
    const client = eventSub();
    let attempts = 0;
    let isPartial = false;
    let open!: () => void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const subscribe: Twitch['subscribe'] = async (login, request, signal) => {
      if (request.type === 'stream.online' && (attempts += 1) === 2) await gate;
      if (request.type === 'channel.goal.begin' && attempts === 1) {
        isPartial = true;
        await pause(Infinity, signal);
      }
      return client.subscribe(login, request, signal);
    };
    await take(t.db, Object.assign(Object.create(client) as Twitch, { subscribe }));
    await until(() => isPartial);
    laterAtTwitch();
    expect(cheer('1')).toBe(2);
    await until(() => counts()[1] === 1);
    const [partial] = twitch.of(CHANNEL).filter(({ id }) => id !== first);
    twitch.dropSession(partial!.id);
    await until(() => attempts === 2);
    laterAtTwitch();
    expect(cheer('2')).toBe(1);
    laterAtTwitch();
    open();
    await until(async () => (await opened()) !== first);
    laterAtTwitch();
    expect(cheer('3')).toBe(2);
    await until(() => counts()[3] === 1);
    mend();
    await former.close();
    expect(counts()).toEqual({ 1: 1, 2: 1, 3: 1 });
  });

  test('stores what a successor dropped with its first session when its former holder stops before the next one', async () => {
    let stops_at = Infinity;
    const former = await take(t.db, undefined, () => stops_at);
    const first = await opened();
    await former.announce(performance.now() + TIMING.handover_ms);
    laterAtTwitch();
    const client = eventSub();
    let attempts = 0;
    let isPartial = false;
    const subscribe: Twitch['subscribe'] = async (login, request, signal) => {
      if (request.type === 'stream.online') attempts += 1;
      if (attempts === 2) await pause(Infinity, signal);
      if (request.type === 'channel.goal.begin') {
        isPartial = true;
        await pause(Infinity, signal);
      }
      return client.subscribe(login, request, signal);
    };
    await take(t.db, Object.assign(Object.create(client) as Twitch, { subscribe }));
    await until(() => isPartial);
    laterAtTwitch();
    expect(cheer('1')).toBe(2);
    const [partial] = twitch.of(CHANNEL).filter(({ id }) => id !== first);
    twitch.dropSession(partial!.id);
    await until(() => attempts === 2);
    stops_at = performance.now();
    await former.close();
    expect(counts()).toEqual({ 1: 1 });
  });
});
