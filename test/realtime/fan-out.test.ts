import { createServer, connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { Channel, Subscription } from '../../realtime/runtime/channel/channel';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { NO_TRACING } from '../../engines/tracing/port';
import { FanOut } from '../../realtime/runtime/delivery/fan-out';
import { Hub } from '../../realtime/runtime/delivery/hub';
import { LoopLoad } from '../../realtime/runtime/delivery/loop-load';
import { RealtimeMetrics } from '../../realtime/runtime/session/metrics';
import { SendQueue, type Chunk } from '../../realtime/runtime/session/send-queue';
import type { Session } from '../../realtime/runtime/session/session';
import { kernelBacklog, write, writeAll } from '../../realtime/runtime/delivery/socket-write';

/** Stands for a session whose socket takes everything: it says what it was given with each write. */
class Taking {
  readonly queue = new SendQueue();
  readonly writes: string[][] = [];
  constructor(private readonly onWrite: () => void = () => undefined) {}
  pump(): void {
    if (this.queue.empty) return;
    this.writes.push(this.queue.next(Infinity).map(({ channel, bytes }) => `${channel} ${bytes.toString()}`));
    this.onWrite();
  }
}

const channel = (name: string, seq = 0): Channel => {
  const made = new Channel(name, 'event', 'epoch');
  made.seq = seq;
  return made;
};

function join(to: Channel, session: Taking): Subscription {
  const joined = new Subscription(session as unknown as Session, to, to.seq);
  to.join(joined);
  return joined;
}

const offered: [Subscription, Chunk][] = [];
/** On a loop that is always so busy; on the real one by default. */
const fanOut = (load?: number) =>
  new FanOut(
    (subscription, chunk) => {
      offered.push([subscription, chunk]);
      (subscription.session as unknown as Taking).queue.push(chunk);
      return true;
    },
    load === undefined ? undefined : { at: () => load },
  );
beforeEach(() => void (offered.length = 0));

/** A stored message when it moves the channel's seq on. */
function add(to: FanOut, on: Channel, text: string, stored = true): void {
  to.add(on, Buffer.from(text), !stored);
  if (stored) on.seq += 1;
}

const turned = async (done: () => boolean) => {
  for (let turns = 0; !done() && turns < 100_000; turns += 1) await new Promise((resume) => setImmediate(resume));
  expect(done()).toBe(true);
};

test('who joins while frames gather gets those after the join, and cuts no chunk in two for the others', async () => {
  const fan_out = fanOut();
  const busy = channel('busy', 10);
  const early = new Taking();
  const late = [new Taking(), new Taking(), new Taking()];
  const first = join(busy, early);
  add(fan_out, busy, 'a');
  add(fan_out, busy, 't', false);
  const second = join(busy, late[0]!);
  const third = join(busy, late[1]!);
  add(fan_out, busy, 'b');
  add(fan_out, busy, 'c');
  const last = join(busy, late[2]!);
  expect([first, second, last].map((subscription) => fan_out.place(subscription))).toEqual([10, 11, 13]);
  await turned(() => early.writes.length > 0);
  expect(early.writes).toEqual([['busy atbc']]);
  expect(late.map(({ writes }) => writes)).toEqual([[['busy bc']], [['busy bc']], []]);
  const given = new Map(offered);
  expect(given.get(first)).toMatchObject({ count: 4, before: 10, transient: true });
  expect(given.get(second)).toMatchObject({ count: 2, before: 11, transient: false });
  expect(given.get(third)).toBe(given.get(second));
  expect(fan_out.place(last)).toBe(13);
});

test('a session of two channels gets both in one write, each in its order', async () => {
  const fan_out = fanOut();
  const [large, small] = [channel('large'), channel('small')];
  const both = new Taking();
  for (let n = 0; n < 200; n += 1) join(large, new Taking());
  join(large, both);
  join(small, both);
  for (const text of ['1', '2']) {
    add(fan_out, large, text);
    add(fan_out, small, text);
  }
  await turned(() => offered.length === 202 && both.queue.empty);
  expect(both.writes).toEqual([['large 12', 'small 12']]);
});

test('a message after a pause leaves at once; those that follow a flush leave together', async () => {
  const fan_out = fanOut();
  const busy = channel('busy');
  const session = new Taking();
  join(busy, session);
  // No machine is so slow that the time to wait is over between two messages.
  const began_at = performance.now();
  const clock = jest.spyOn(performance, 'now').mockReturnValue(began_at);
  add(fan_out, busy, '1');
  await new Promise((resume) => setImmediate(resume));
  expect(session.writes).toHaveLength(1);
  for (const text of ['2', '3', '4']) {
    add(fan_out, busy, text);
    await new Promise((resume) => setImmediate(resume));
  }
  expect(session.writes).toHaveLength(1);
  clock.mockRestore();
  await turned(() => session.writes.length === 2);
  expect(session.writes).toEqual([['busy 1'], ['busy 234']]);
  expect(fan_out.saturated).toBe(false);
});

describe('how long frames gather after a flush', () => {
  const NOW = 1_000;
  let clock: jest.SpyInstance<number, []>;
  beforeEach(() => void (clock = jest.spyOn(performance, 'now').mockReturnValue(NOW)));
  afterEach(() => clock.mockRestore());
  const nextTurn = () => new Promise((resume) => setImmediate(resume));

  /** A channel with so many sessions that was written just now. */
  async function flushed(load: number) {
    const fan_out = fanOut(load);
    const busy = channel('busy');
    const session = new Taking();
    join(busy, session);
    for (let n = 1; n < 2_000; n += 1) join(busy, new Taking());
    add(fan_out, busy, '1');
    await nextTurn();
    expect(session.writes).toHaveLength(1);
    return { fan_out, busy, session };
  }

  test.each([
    [0, 1],
    [0.7, 1],
    [0.8, 3.5],
    [0.9, 6],
    [1, 6],
  ])('stored messages on a loop that is busy for %d of its time: %d times as long as it took', async (load, times) => {
    const { busy } = await flushed(load);
    const took_ms = (busy.due - NOW) / 6;
    expect(took_ms).toBeGreaterThan(4);
    expect(busy.stored_due - NOW).toBeCloseTo(times * took_ms, 5);
  });

  test('a message that is not stored waits on where a stored one leaves, and leaves with it', async () => {
    const { fan_out, busy, session } = await flushed(0);
    clock.mockReturnValue(busy.stored_due);
    add(fan_out, busy, 't', false);
    await nextTurn();
    expect(session.writes).toHaveLength(1);
    add(fan_out, busy, '2');
    await nextTurn();
    expect(session.writes).toEqual([['busy 1'], ['busy t2']]);
  });
});

test('how busy the loop was is looked at each twenty milliseconds, and older times count less', () => {
  let [active, idle] = [0, 0];
  let looks = 0;
  const look = () => {
    looks += 1;
    return { active, idle, utilization: 0 };
  };
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  const load = new LoopLoad(look);
  clock.mockRestore();
  expect([load.at(19), looks]).toEqual([0, 1]);
  [active, idle] = [15, 5];
  expect(load.at(20)).toBeCloseTo(0.75 * (1 - Math.exp(-0.2)), 10);
  expect([load.at(39) > 0, looks]).toEqual([true, 2]);
  active += 10_000;
  expect(load.at(10_020)).toBeCloseTo(1, 10);
  // Nothing is known of a time in which the loop has not turned.
  expect(load.at(10_100)).toBeCloseTo(1, 10);
  idle += 100;
  expect(load.at(10_200)).toBeCloseTo(Math.exp(-1), 10);
});

test('what nobody takes makes the tail wait, until it is handed out', async () => {
  const fan_out = fanOut();
  const busy = channel('busy');
  const session = new Taking();
  join(busy, session);
  for (let n = 0; n < 9_000; n += 1) add(fan_out, busy, 'x');
  expect(fan_out.saturated).toBe(true);
  fan_out.drain();
  expect(fan_out.saturated).toBe(false);
  expect(session.writes.flat().join('').replaceAll('busy ', '')).toHaveLength(9_000);
});

describe('writing past the stream', () => {
  async function pair(): Promise<[Socket, Socket, () => void]> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const far = connect(port, '127.0.0.1');
    const [near] = (await once(server, 'connection')) as [Socket];
    return [near, far, () => (near.destroy(), far.destroy(), server.close())];
  }

  test('bytes come in order, whoever writes them and however much the kernel takes', async () => {
    const [near, far, end] = await pair();
    far.pause();
    const sent: Buffer[] = [];
    let partly = 0;
    for (let n = 0; n < 60; n += 1) {
      const bytes = Buffer.alloc(200_000, n);
      sent.push(bytes);
      // Node's own writes, ours, and several at once: whatever waits must not be overtaken.
      if (n % 7 === 3) {
        near.write(bytes);
      } else if (n % 5 === 2) {
        sent.push(bytes);
        writeAll(near, [bytes, bytes]);
      } else if (!write(near, bytes)) {
        partly += 1;
      }
    }
    expect(partly).toBeGreaterThan(5);
    expect(kernelBacklog(near) + near.writableLength).toBeGreaterThan(1_000_000);
    const whole = Buffer.concat(sent);
    const got: Buffer[] = [];
    let length = 0;
    far.on('data', (bytes: Buffer) => {
      got.push(bytes);
      length += bytes.length;
    });
    far.resume();
    await turned(() => length === whole.length);
    expect(Buffer.concat(got).equals(whole)).toBe(true);
    expect(kernelBacklog(near)).toBe(0);
    expect(writeAll(near, [])).toBe(true);
    end();
  });

  test('a connection that is gone is destroyed, with what the kernel had not taken', async () => {
    const [near, far, end] = await pair();
    near.on('error', () => undefined);
    far.pause();
    for (let n = 0; n < 100; n += 1) write(near, Buffer.alloc(200_000));
    const closed = new Promise((resolve) => near.once('close', resolve));
    far.resetAndDestroy();
    await closed;
    expect(near.destroyed).toBe(true);
    expect(write(near, Buffer.from('late'))).toBe(true);
    end();
  });
});

test('a broadcast that finds no room during a replay drops the channel, as it is stored nowhere', () => {
  const errors: [string, string][] = [];
  const queue = new SendQueue();
  const session = {
    open: true,
    blocked: true,
    fits: () => false,
    queue,
    subscriptions: [] as Subscription[],
    stalledFor: () => 0,
    enqueue: (chunk: Chunk) => queue.push(chunk),
    pump: () => undefined,
    discard: () => 0,
    unsubscribed: () => undefined,
    error: (code: string, name: string) => errors.push([code, name]),
  };
  const hub = new Hub(
    'epoch',
    new RealtimeMetrics(createPrometheusMetrics({})),
    () => undefined,
    NO_TRACING,
    () => 'event',
  );
  const replayed = hub.channel('chat:a');
  hub.opened(replayed, 0);
  const subscription = new Subscription(session as unknown as Session, replayed, 0);
  session.subscriptions.push(subscription);
  replayed.replay(subscription);
  session.fits = () => true;
  hub.transient('chat:a', '{}');
  expect([subscription.state, errors, queue.empty]).toEqual(['replaying', [], false]);
  session.fits = () => false;
  hub.transient('chat:a', '{}');
  expect([subscription.state, errors]).toEqual(['ended', [['CHANNEL_DROPPED', 'chat:a']]]);
});
