import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';
import { exponential } from '../../clients/js/backoff';
import {
  LumioClient,
  Refused,
  type ChannelName,
  type ClientOptions,
  type Every,
  type Problem,
  type SubscribeOptions,
} from '../../clients/js/index';
import { testDatabase, type TestDatabase } from '../support/database';
import { PATIENCE_MS, timeLimit } from '../support/patience';
import { ACCOUNT, caller, OTHER_ACCOUNT, publish, realtimeNode, type RealtimeNode } from '../support/realtime';

const EVENTS = `events:${ACCOUNT}` as const;
const CHAT = `chat:${ACCOUNT}` as const;
/** Waits as short as they may be; what is stable and what is silent is still told apart. */
const QUICK = { first_ms: 5, most_ms: 40, stable_ms: 10_000, ping_ms: 10_000, patience_ms: 5_000 };

const clients = new Set<LumioClient>();
afterEach(() => {
  for (const client of clients) client.close();
  clients.clear();
});

/** A client that keeps what it is told. */
function opened(url: string, options: Partial<ClientOptions> = {}) {
  const states: string[] = [];
  const problems: Problem[] = [];
  const tokens: string[] = [];
  let made = 0;
  const client = new LumioClient({
    url,
    token: () => 'good',
    timing: QUICK,
    ...options,
    open(address, token) {
      tokens.push(`${token}`);
      made += 1;
      return new WebSocket(token === null ? address : `${address}?token=${token}`);
    },
  });
  clients.add(client);
  client.on('state', (state) => states.push(state));
  client.on('problem', (problem) => problems.push(problem));
  return { client, states, problems, tokens, attempts: () => made };
}

/** Listens, and keeps what came. */
function listen(client: LumioClient, channel: ChannelName, options: SubscribeOptions = {}) {
  const got: number[] = [];
  const accepted: boolean[] = [];
  const ended: Problem[] = [];
  const subscription = client.subscribe(channel, ({ data }) => got.push((data as { n: number }).n), {
    onSubscribed: ({ recovered }) => accepted.push(recovered),
    onEnded: (problem) => ended.push(problem),
    ...options,
  });
  return { subscription, got, accepted, ended };
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (const deadline = Date.now() + PATIENCE_MS; !condition();) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resume) => setTimeout(resume, 5));
  }
}

function thrownBy(call: () => void): string {
  try {
    call();
    return 'nothing';
  } catch (error) {
    return (error as Error).message;
  }
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, n) => ({ n: from + n }));

describe('on a node', () => {
  let t: TestDatabase;
  let node: RealtimeNode;
  beforeAll(async () => {
    t = await testDatabase();
    node = await realtimeNode(t);
  });
  afterAll(async () => {
    await node?.stop();
    await t?.drop();
  });
  beforeEach(() => {
    node.off.clear();
    node.ended.clear();
  });

  test('what is published arrives, and behind a connection that was cut exactly what was missed', async () => {
    node.callers.set('first', caller({ credential_id: 'revoked' }));
    const given = ['first', 'good'];
    const { client, states, problems, attempts } = opened(node.url, { token: () => given.shift()! });
    const one = listen(client, EVENTS);
    await until(() => one.accepted.length === 1, 'the channel');
    await publish(t, node, EVENTS, numbers(1, 3));
    await until(() => one.got.length === 3, 'three');
    // The token is revoked: the server tells so and closes; a fresh one is good again.
    node.revoke({ credential_id: 'revoked' });
    await until(() => states.includes('waiting'), 'the end of the connection');
    await publish(t, node, EVENTS, numbers(4, 9));
    await until(() => one.got.length === 9, 'nine');
    expect(one.got).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect([one.accepted, one.ended, attempts()]).toEqual([[true, true], [], 2]);
    expect(states).toEqual(['open', 'waiting', 'connecting', 'open']);
    expect(problems).toEqual([{ code: 'TOKEN_REVOKED', message: 'The token was revoked' }]);
    // A later run goes on behind what this one has seen.
    const later = listen(opened(node.url).client, EVENTS, { since: one.subscription.last_id! });
    await publish(t, node, EVENTS, numbers(10, 10));
    await until(() => later.got.length === 1, 'the tenth');
    expect([later.got, later.accepted]).toEqual([[10], [true]]);
  });

  test('a place that the server does not know is told as a loss, and what comes then arrives', async () => {
    const one = listen(opened(node.url).client, CHAT, { since: '000000000000-7' });
    await until(() => one.accepted.length === 1, 'the channel');
    await publish(t, node, CHAT, numbers(1, 1));
    await until(() => one.got.length === 1, 'the first');
    expect([one.accepted, one.got]).toEqual([[false], [1]]);
  });

  test('two listeners share a channel, one that throws harms nobody, and nothing comes after the last has left', async () => {
    const { client } = opened(node.url);
    const report = jest.spyOn(globalThis, 'queueMicrotask').mockImplementation((call) => reported.push(call));
    const reported: (() => void)[] = [];
    client.subscribe(EVENTS, () => {
      throw new Error('of the listener');
    });
    const first = listen(client, EVENTS);
    const second = listen(client, EVENTS);
    await until(() => first.accepted.length === 1, 'the channel');
    expect(second.accepted).toEqual([true]);
    await publish(t, node, EVENTS, numbers(1, 1));
    await until(() => second.got.length === 1, 'one');
    first.subscription.close();
    first.subscription.close();
    await publish(t, node, EVENTS, numbers(2, 2));
    await until(() => second.got.length === 2, 'two');
    report.mockRestore();
    expect([first.got, second.got]).toEqual([[1], [1, 2]]);
    expect(reported.map((call) => thrownBy(call))).toEqual(['of the listener', 'of the listener']);
    second.subscription.close();
    await publish(t, node, EVENTS, numbers(3, 3));
    expect(second.got).toEqual([1, 2]);
  });

  test('a feature that is off ends its channel, and the client with the last of them', async () => {
    node.off.add('feature:multichat');
    const { client, attempts, states } = opened(node.url);
    const events = listen(client, EVENTS);
    const chat = listen(client, CHAT);
    await until(() => chat.ended.length === 1, 'the end of the chat');
    expect(chat.ended[0]).toMatchObject({ code: 'FEATURE_DISABLED', channel: CHAT });
    await until(() => events.accepted.length === 1, 'the channel of events');
    await publish(t, node, EVENTS, numbers(1, 1));
    await until(() => events.got.includes(1), 'an event');
    expect([client.state, events.ended]).toEqual(['open', []]);
    events.subscription.close();
    expect(client.state).toBe('open');
    const alone = opened(node.url);
    listen(alone.client, CHAT);
    await until(() => alone.client.state === 'stopped', 'the end');
    expect([alone.attempts(), attempts(), states]).toEqual([1, 1, ['open']]);
    expect(() => listen(alone.client, EVENTS)).toThrow('The client is stopped');
  });

  test('a channel that is refused is tried once more with a fresh token, and then ends alone', async () => {
    const { client, tokens, problems } = opened(node.url, { token: () => `good` });
    const foreign = [`events:${OTHER_ACCOUNT}`, `chat:${OTHER_ACCOUNT}`] as const;
    const refused = foreign.map((channel) => listen(client, channel));
    const own = listen(client, EVENTS);
    await until(() => refused.every(({ ended }) => ended.length === 1), 'the refusals');
    await publish(t, node, EVENTS, numbers(1, 1));
    await until(() => own.got.length === 1, 'an event');
    expect([client.state, tokens.length]).toEqual(['open', 2]);
    expect(problems.map(({ code }) => code)).toEqual(Array(4).fill('UNAUTHORIZED'));
    own.subscription.close();
    const alone = opened(node.url);
    listen(alone.client, foreign[0]);
    await until(() => alone.client.state === 'stopped', 'the end');
    expect(alone.attempts()).toBe(2);
  });

  test('a right that comes with the fresh token lets the channel in', async () => {
    node.callers.set('poor', caller({ permissions: new Set(['chat:read']), credential_id: 'c2' }));
    const given = ['poor', 'good'];
    const { client, problems } = opened(node.url, { token: () => given.shift()! });
    const one = listen(client, EVENTS);
    await until(() => one.accepted.length === 1, 'the channel');
    expect([problems.length, one.ended, client.state]).toEqual([1, [], 'open']);
  });

  test('a broadcast goes out, and one that is refused costs no subscription', async () => {
    const { client, problems, attempts } = opened(node.url);
    expect(client.broadcast(EVENTS, {})).toBe(false);
    const events = listen(client, EVENTS);
    const chat = listen(client, CHAT);
    await until(() => events.accepted.length + chat.accepted.length === 2, 'both');
    expect(client.broadcast(EVENTS, { n: 7, type: 'made:up' })).toBe(true);
    await until(() => events.got.length === 1, 'the broadcast');
    // It may read the chat, and not write it.
    expect(client.broadcast(CHAT, { n: 1 })).toBe(true);
    await until(() => problems.length === 1, 'the refusal');
    await publish(t, node, CHAT, numbers(2, 2));
    await until(() => chat.got.length === 1, 'the chat going on');
    expect([events.got, chat.got, attempts(), chat.accepted, chat.ended]).toEqual([[7], [2], 1, [true], []]);
    expect(problems).toEqual([{ code: 'UNAUTHORIZED', message: 'Not authorized for this channel', channel: CHAT }]);
  });

  test('a credential that fails twice in a row stops it, at the door too', async () => {
    const refusals = opened(node.url, { token: () => 'forged' });
    const one = listen(refusals.client, EVENTS);
    await until(() => refusals.client.state === 'stopped', 'the end');
    expect([refusals.attempts(), one.ended.map(({ code }) => code)]).toEqual([2, ['UNAUTHORIZED']]);
    const unwilling = opened(node.url, {
      token: () => {
        throw new Refused('log in again');
      },
    });
    await until(() => unwilling.client.state === 'stopped', 'the end');
    expect([unwilling.attempts(), unwilling.problems.map(({ message }) => message)]).toEqual([
      0,
      ['log in again', 'log in again'],
    ]);
  });

  test('a token that could not be made is asked for again and again, each time anew', async () => {
    let asked = 0;
    const { client, problems } = opened(node.url, {
      token() {
        asked += 1;
        if (asked <= 4) throw new Error('not now');
        return 'good';
      },
    });
    await until(() => client.state === 'open', 'the connection');
    expect([asked, problems.map(({ code }) => code)]).toEqual([5, Array(4).fill('TOKEN_FAILED')]);
  });

  test('nothing of it remains after close, whatever it was at', async () => {
    let give: (token: string) => void = () => undefined;
    const late = opened(node.url, { token: () => new Promise<string>((resolve) => (give = resolve)) });
    late.client.close();
    give('good');
    const open = opened(node.url);
    const one = listen(open.client, EVENTS);
    await until(() => one.accepted.length === 1, 'the channel');
    open.client.close();
    open.client.close();
    await until(() => node.realtime.stats().sessions === 0, 'no session');
    await publish(t, node, EVENTS, numbers(1, 1));
    expect([late.attempts(), late.states, open.states, one.got, one.ended]).toEqual([
      0,
      ['stopped'],
      ['open', 'stopped'],
      [],
      [],
    ]);
  });
});

/** A server that answers as a test says: for what the real one does only under load or over hours. */
async function scripted(
  answer: (message: { type: string; channel?: string; since?: string }, nth: number) => unknown[],
) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  const heard: { at: number; type: string; since?: string }[] = [];
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    const nth = connections;
    for (const one of answer({ type: 'open' }, nth)) socket.send(JSON.stringify(one));
    socket.on('message', (text) => {
      const message = JSON.parse(String(text)) as { type: string };
      heard.push({ at: performance.now(), ...message });
      for (const one of answer(message, nth)) {
        if (one === 'cut') socket.terminate();
        else socket.send(JSON.stringify(one));
      }
    });
  });
  await new Promise((ready) => server.once('listening', ready));
  servers.add(server);
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/v1/ws`,
    heard,
    connections: () => connections,
    of: (type: string) => heard.filter((message) => message.type === type),
  };
}
const servers = new Set<WebSocketServer>();
afterEach(() => {
  for (const server of servers) {
    for (const socket of server.clients) socket.terminate();
    server.close();
  }
  servers.clear();
});

const WELCOME = { type: 'welcome', session_id: 's', server_version: '1' };
const subscribed = (channel?: string, more = {}) => ({ type: 'subscribed', channel, id: 'e-1', ...more });

test('nothing is asked before the welcome, and a server that never says it is given up', async () => {
  const server = await scripted(({ type, channel }, nth) =>
    type === 'open' ? (nth > 1 ? [WELCOME] : []) : [subscribed(channel)],
  );
  const { client, problems } = opened(server.url, { timing: { ...QUICK, patience_ms: 1_000 } });
  const one = listen(client, EVENTS);
  await until(() => one.accepted.length === 1, 'the channel');
  expect([server.connections(), problems.map(({ message }) => message)]).toEqual([2, ['no welcome came']]);
  expect(server.heard.map(({ type }) => type)).toEqual(['subscribe']);
});

test('pings go by the timer that a page passes, which ends with the connection', async () => {
  const server = await scripted(({ type, channel }) =>
    type === 'open' ? [WELCOME] : type === 'ping' ? [{ type: 'pong' }] : [subscribed(channel)],
  );
  const ticks = new Set<() => void>();
  const every: Every = (_ms, tick) => {
    ticks.add(tick);
    return () => void ticks.delete(tick);
  };
  const { client } = opened(server.url, { every, timing: { ...QUICK, ping_ms: 0 } });
  const one = listen(client, EVENTS);
  await until(() => one.accepted.length === 1, 'the channel');
  for (const tick of ticks) tick();
  await until(() => server.of('ping').length > 0, 'the ping');
  client.close();
  expect(ticks.size).toBe(0);
});

test('pings go out, and a server that answers none is given up', async () => {
  const server = await scripted(({ type }, nth) =>
    type === 'open' ? [WELCOME] : type === 'ping' && nth > 1 ? [{ type: 'pong' }] : [],
  );
  const { client, problems } = opened(server.url, { timing: { ...QUICK, ping_ms: 20, patience_ms: 1_000 } });
  await until(() => server.connections() === 2 && server.of('ping').length > 3, 'pings over the second');
  expect([client.state, problems.map(({ message }) => message)]).toEqual(['open', ['no pong came']]);
});

test('a dropped channel is asked for again over the same connection, behind the last message, slower each time', async () => {
  let asked = 0;
  const server = await scripted(({ type, channel }) => {
    if (type === 'open') return [WELCOME];
    if (type !== 'subscribe') return [];
    asked += 1;
    const dropped = { type: 'error', code: 'CHANNEL_DROPPED', message: 'behind', channel };
    const message = { type: 'event', channel, event_type: 'a:b', id: `e-${asked}`, data: { n: asked } };
    return [subscribed(channel, { id: `e-${asked - 1}` }), message, ...(asked < 5 ? [dropped] : [])];
  });
  const { client } = opened(server.url, { random: () => 0, timing: { ...QUICK, first_ms: 10, most_ms: 1_000 } });
  const one = listen(client, EVENTS);
  await until(() => one.got.length === 5, 'five');
  expect([server.connections(), server.heard.map(({ since }) => since)]).toEqual([
    1,
    [undefined, 'e-1', 'e-2', 'e-3', 'e-4'],
  ]);
  const waits = server.heard.slice(1).map(({ at }, n) => at - server.heard[n]!.at);
  [10, 20, 40, 80].forEach((least, n) => expect(waits[n]).toBeGreaterThan(least - 2));
});

test('waits grow while no connection is stable, and begin anew after one that was', async () => {
  const server = await scripted(({ type, channel }) =>
    type === 'open' ? [WELCOME] : type === 'subscribe' ? [subscribed(channel), 'cut'] : [],
  );
  const { client } = opened(server.url, { random: () => 0, timing: { ...QUICK, first_ms: 10, most_ms: 1_000 } });
  listen(client, EVENTS);
  await until(() => server.heard.length === 5, 'five connections');
  const waits = server.heard.slice(1).map(({ at }, n) => at - server.heard[n]!.at);
  [10, 20, 40, 80].forEach((least, n) => expect(waits[n]).toBeGreaterThan(least - 2));
  client.close();

  const lasting = await scripted(({ type }) => (type === 'open' ? [WELCOME] : type === 'ping' ? ['cut'] : []));
  const timing = { ...QUICK, first_ms: 20, most_ms: 10_000, stable_ms: 30, ping_ms: 60 };
  const stable = opened(lasting.url, { random: () => 0, timing });
  const began = performance.now();
  await until(() => lasting.connections() === 11, 'eleven connections');
  // Without the new beginning the tenth wait alone would be 10 s, and all of them 20 s.
  expect([stable.client.state === 'stopped', performance.now() - began < timeLimit(15_000)]).toEqual([false, true]);
});

test('a refusal counts as the second in a row only until a connection was stable', async () => {
  const server = await scripted(({ type }, nth) => {
    const expired = { type: 'error', code: 'TOKEN_EXPIRED', message: 'ended' };
    return type === 'open' ? [WELCOME] : type === 'ping' && nth < 4 ? [expired] : [{ type: 'pong' }];
  });
  const { client, attempts } = opened(server.url, { timing: { ...QUICK, stable_ms: 20, ping_ms: 40 } });
  await until(() => attempts() === 4 && server.of('ping').length > 4, 'the fourth connection');
  expect(client.state).toBe('open');
  client.close();
  const hasty = await scripted(({ type }) =>
    type === 'open' ? [WELCOME] : [{ type: 'error', code: 'TOKEN_REVOKED', message: 'ended' }],
  );
  const stopping = opened(hasty.url, { timing: { ...QUICK, ping_ms: 10 } });
  await until(() => stopping.client.state === 'stopped', 'the end');
  expect([stopping.attempts(), stopping.problems.map(({ code }) => code)]).toEqual([
    2,
    ['TOKEN_REVOKED', 'TOKEN_REVOKED'],
  ]);
});

test('the waits are between 1 and 30 s, double, and differ by chance', () => {
  const waits = (random: () => number) => {
    const backoff = exponential(1_000, 30_000, random);
    return Array.from({ length: 8 }, () => Math.round(backoff.next()));
  };
  expect(waits(() => 0)).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
  expect(waits(() => 1 - Number.EPSILON)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  const again = exponential(1_000, 30_000, () => 0);
  for (let tries = 0; tries < 5_000; tries++) expect(again.next()).toBeLessThanOrEqual(30_000);
  again.reset();
  expect(again.next()).toBe(1_000);
});

test('an address that is none, or a runtime without WebSocket, is told at once', () => {
  expect(() => new LumioClient({ url: 'nowhere' })).toThrow('Invalid URL');
  const { WebSocket: own } = globalThis as { WebSocket?: unknown };
  Object.assign(globalThis, { WebSocket: undefined });
  try {
    expect(() => new LumioClient({ url: 'ws://127.0.0.1:1/v1/ws' })).toThrow('pass `open`');
  } finally {
    Object.assign(globalThis, { WebSocket: own });
  }
});
