import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { SUBSCRIPTIONS, subscribeAll } from '../../../ingest/twitch/subscriptions';
import { openEventSub } from '../../../vendors/twitch/eventsub';
import type { EventSubSession, Twitch } from '../../../vendors/twitch/port';
import { until } from '../../support/projections';

const SENT_AT = '2026-11-22T10:00:00Z';

/** What of a session falls between two sockets, or between a process and its end. */
describe('a session of EventSub', () => {
  let door: WebSocketServer;
  let url: string;
  const sockets: WebSocket[] = [];
  const heard: string[] = [];
  const ages: (number | undefined)[] = [];
  const alive: number[] = [];
  /** Of what was heard; where nobody says it, all of it. */
  let stored: number | undefined;
  let most_waiting: number;
  const waiting = () => heard.length - (stored ?? heard.length);
  let session: EventSubSession;
  let given_up: AbortController;

  const frame = (message_type: string, payload: object, message_id = message_type) =>
    JSON.stringify({ metadata: { message_id, message_type, message_timestamp: SENT_AT }, payload });
  const welcome = (id: string) => frame('session_welcome', { session: { id, keepalive_timeout_seconds: 60 } });
  const word = (id: string) => frame('notification', {}, id);
  const wordAt = (id: string, later_ms: number) => {
    const message_timestamp = new Date(Date.parse(SENT_AT) + later_ms).toISOString();
    return JSON.stringify({ metadata: { message_id: id, message_type: 'notification', message_timestamp } });
  };
  const move = () => frame('session_reconnect', { session: { reconnect_url: `${url}?moved` } });

  beforeEach(async () => {
    door = new WebSocketServer({ host: '127.0.0.1', port: 0 });
    await once(door, 'listening');
    url = `ws://127.0.0.1:${(door.address() as AddressInfo).port}`;
    door.once('connection', (first) => {
      sockets.push(first);
      first.send(welcome('one'));
    });
    given_up = new AbortController();
    stored = undefined;
    most_waiting = 0;
    const listener = {
      full: () => waiting() > 2,
      onFrame({ value, age_ms }: { value: unknown; age_ms: number | undefined }) {
        ages.push(age_ms);
        heard.push((value as { metadata: { message_id: string } }).metadata.message_id);
        most_waiting = Math.max(most_waiting, waiting());
      },
      onAlive: (at: number) => void alive.push(at),
    };
    session = await openEventSub({ url, allow_loopback: true }, listener, given_up.signal);
  });
  afterEach(async () => {
    await session.close();
    sockets.length = heard.length = ages.length = alive.length = 0;
    await new Promise((closed) => door.close(closed));
  });

  test('that is moved while nothing is read has what was said over the old socket', async () => {
    const [old] = sockets;
    door.once('connection', (next) => {
      sockets.push(next);
      session.pause();
      old!.send(word('last of the old'));
      next.send(welcome('two'));
    });
    old!.send(move());
    await until(() => session.session_id === 'two');
    await until(() => heard.length === 1);
    sockets[1]!.send(word('first of the new'));
    session.resume();
    await until(() => heard.length === 2);
    expect(heard).toEqual(['last of the old', 'first of the new']);
  });

  test('that is closed has what was said before Twitch hears of it', async () => {
    sockets[0]!.send(word('on its way'));
    await session.close();
    expect(heard).toEqual(['on its way']);
  });

  test('that is closed while nothing is read has it, too', async () => {
    session.pause();
    sockets[0]!.send(word('on its way'));
    const closed = session.close();
    // Whoever has no room meanwhile must not stop the last words.
    session.pause();
    await closed;
    expect(heard).toEqual(['on its way']);
  });

  test('that is closed is read no faster than what it said is stored', async () => {
    let done = (stored = 0);
    // Each is more than is read of a socket at once.
    const long = 'x'.repeat(100_000);
    for (let n = 0; n < 50; n += 1) sockets[0]!.send(frame('notification', { long }, `word ${n}`));
    const storing = setInterval(() => (stored = done = Math.min(done + 1, heard.length)), 1);
    await session.close();
    clearInterval(storing);
    expect(heard).toHaveLength(50);
    expect(most_waiting).toBeLessThanOrEqual(5);
  });

  test('that is closed by a process which then stands still for longer than a goodbye may take has it', async () => {
    sockets[0]!.send(word('on its way'));
    const closed = session.close();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100);
    await closed;
    expect(heard).toEqual(['on its way']);
  });

  test('that Twitch asks to move while it is closed does not', async () => {
    sockets[0]!.send(move());
    await session.close();
    expect(door.clients.size).toBe(0);
  });

  test('that read nothing for an hour takes neither what waited for old, nor itself for awake', async () => {
    const hour_ms = 3_600_000;
    const paused_at = Date.now();
    session.pause();
    const [socket] = sockets;
    socket!.send(wordAt('stale', -hour_ms));
    socket!.send(wordAt('waited', 60_000));
    const now = Date.now.bind(Date);
    const clock = jest.spyOn(Date, 'now').mockImplementation(() => now() + hour_ms);
    try {
      session.resume();
      await until(() => heard.length === 2);
      expect(ages[0]).toBeGreaterThan(hour_ms - 30_000);
      expect(ages[1]).toBe(0);
      expect(Math.max(...alive)).toBeLessThan(paused_at + hour_ms / 2);
      // By then it has caught up.
      socket!.send(wordAt('new', hour_ms + 300_000));
      await until(() => heard.length === 3);
      expect(alive.at(-1)).toBeGreaterThan(paused_at + hour_ms / 2);
    } finally {
      clock.mockRestore();
    }
  });

  test('knows the time by Twitch’s clock, and takes it for what is subscribed to and not dated', async () => {
    expect(Date.parse(session.now()) - Date.parse(SENT_AT)).toBeLessThan(300_000);
    let calls = 0;
    const twitch = {
      subscribe: () => Promise.resolve({ kind: 'made', created_at: null, cost: null, left: null, n: (calls += 1) }),
    } as unknown as Twitch;
    const seen: Record<string, string>[] = [];
    const { since } = await subscribeAll({
      twitch,
      session_id: session.session_id,
      reader: { channel_id: '1', user_id: '1' },
      now: () => `after ${calls}`,
      login: () => Promise.resolve({ token: 't', client_id: 'c' }),
      onSince: (now) => seen.push(now),
      signal: given_up.signal,
    });
    expect(since['stream.online']).toBe('after 1');
    expect(since['channel.suspicious_user.update']).not.toBe('after 1');
    // From the first on it is known what is received already; a type of two subscriptions when both are made.
    expect(seen[0]).toEqual({ 'stream.online': 'after 1' });
    expect(seen.at(-1)).toEqual(since);
    const raids = SUBSCRIPTIONS.flatMap(({ type }, at) => (type === 'channel.raid' ? [at] : []));
    expect(raids).toHaveLength(2);
    expect(seen.findIndex((one) => 'channel.raid' in one)).toBeGreaterThanOrEqual(raids[1]!);
  });

  test('has subscribed to both raids from the later of two times, however each is written', async () => {
    const starts = ['2026-11-22T10:00:00Z', '2026-11-22T10:00:00.5Z'];
    const { since } = await subscribeAll({
      wanted: SUBSCRIPTIONS.filter(({ type }) => type === 'channel.raid'),
      twitch: {
        subscribe: () => Promise.resolve({ kind: 'made', created_at: starts.shift() ?? null, cost: null, left: null }),
      } as unknown as Twitch,
      session_id: 's',
      reader: { channel_id: '1', user_id: '1' },
      now: () => SENT_AT,
      login: () => Promise.resolve({ token: 't', client_id: 'c' }),
      onSince: () => undefined,
      signal: new AbortController().signal,
    });
    expect(since).toEqual({
      'channel.raid': '2026-11-22T10:00:00.5Z',
      'channel.raid:to': '2026-11-22T10:00:00Z',
      'channel.raid:from': '2026-11-22T10:00:00.5Z',
    });
  });
});
