import { Channel, Subscription } from '../../../realtime/runtime/channel/channel';
import { FanOut } from '../../../realtime/runtime/delivery/fan-out';
import { SendQueue, type Chunk } from '../../../realtime/runtime/session/send-queue';
import type { Session } from '../../../realtime/runtime/session/session';

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

test('a small channel is written before a large one that came first, and once only', async () => {
  const fan_out = fanOut();
  const [large, small] = [channel('large'), channel('small')];
  let written = 0;
  let before = -1;
  const slow = () => {
    written += 1;
    for (const until = performance.now() + 0.02; performance.now() < until;);
  };
  const crowd = Array.from({ length: 1_000 }, () => new Taking(slow));
  for (const session of crowd) join(large, session);
  const quick = new Taking(() => (before = written));
  join(small, quick);
  add(fan_out, large, 'x');
  await turned(() => written > 0);
  add(fan_out, small, 'y');
  await turned(() => written === 1_000);
  expect(quick.writes).toEqual([['small y']]);
  // One slice of the large one was under way, at most two.
  expect(before).toBeLessThan(500);
  expect(crowd.every(({ writes }) => writes.length === 1)).toBe(true);
});

test('a large channel under small ones that never stop is written after twenty milliseconds', async () => {
  const fan_out = fanOut();
  const large = channel('large');
  let [small_writes, large_writes] = [0, 0];
  const burn = () => {
    for (const until = performance.now() + 0.02; performance.now() < until;);
  };
  for (let n = 0; n < 400; n += 1)
    join(
      large,
      new Taking(() => {
        large_writes += 1;
        burn();
      }),
    );
  const smalls = Array.from({ length: 10 }, (_, n) => {
    const small = channel(`small ${n}`);
    for (let member = 0; member < 25; member += 1)
      join(
        small,
        new Taking(() => {
          small_writes += 1;
          burn();
        }),
      );
    return small;
  });
  // 250 writes of 20 us come due every 4 ms: more than there is time for.
  const load = setInterval(() => {
    for (const small of smalls) if (small.gathering === null) add(fan_out, small, 's');
  }, 1);
  for (const small of smalls) add(fan_out, small, 's');
  add(fan_out, large, 'l');
  await turned(() => large_writes === 400).finally(() => clearInterval(load));
  // 20 ms of small ones, then every second slice: in all no more than 50 ms of writes, the large one's 8 among them.
  expect(small_writes).toBeGreaterThan(50);
  expect(small_writes).toBeLessThan(2_100);
  fan_out.drain();
});
