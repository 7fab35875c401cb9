import type { Relay } from '../../engines/relay/port';
import { PATIENCE_MS } from '../support/patience';

/** Two nodes on one relay: the same object twice where the engine is in-process. */
export interface RelayPair {
  a: Relay;
  b: Relay;
  close(): Promise<void>;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** What every relay adapter keeps. */
export function relayContract(name: string, open: () => Promise<RelayPair>): void {
  describe(`relay: ${name}`, () => {
    let pair: RelayPair;
    beforeEach(async () => {
      pair = await open();
    });
    afterEach(() => pair.close());

    /** Subscriptions may take a moment to reach a server: publishes marks until one arrives. */
    async function listening(topic: string, subscriber: Relay, publisher: Relay): Promise<() => void> {
      let heard = false;
      const end = subscriber.subscribe(topic, (message) => (heard ||= message === 'mark'));
      const deadline = Date.now() + PATIENCE_MS;
      while (!heard && Date.now() < deadline) {
        await publisher.publish(topic, 'mark');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      return end;
    }

    test('a message reaches every subscriber of its topic on every node, in order, whole', async () => {
      const on_a: string[] = [];
      const on_b: string[] = [];
      const collect = (into: string[]) => (message: string) => void (message === 'mark' || into.push(message));
      pair.a.subscribe('live', collect(on_a));
      pair.b.subscribe('live', collect(on_b));
      await listening('live', pair.a, pair.b);
      await listening('live', pair.b, pair.a);
      const sent = Array.from({ length: 200 }, (_, i) => `${i}: Ä€😀 "quoted" \n`);
      for (const message of sent) await pair.a.publish('live', message);
      await until(() => on_a.length >= 200 && on_b.length >= 200, 'all messages');
      expect(on_a).toEqual(sent);
      expect(on_b).toEqual(sent);
    });

    test('once a topic is heard, nothing is missed that another node publishes to it', async () => {
      const got: string[] = [];
      const sent = Array.from({ length: 50 }, (_, n) => `new-${n}`);
      for (const topic of sent) {
        pair.b.subscribe(topic, (message) => got.push(message));
        // The server has half a second each time, which a busy machine may take.
        for (let asked = 0; !(await pair.b.heard(topic)); asked += 1) expect(asked).toBeLessThan(20);
        await pair.a.publish(topic, topic);
      }
      await until(() => got.length >= sent.length, 'a message on each');
      expect(got.sort()).toEqual(sent.sort());
    });

    test('other topics stay silent, and an ended subscription hears nothing more', async () => {
      const heard: string[] = [];
      const end = pair.b.subscribe('one', (message) => heard.push(message));
      const other: string[] = [];
      pair.b.subscribe('two', (message) => other.push(message));
      await listening('one', pair.b, pair.a);
      await pair.a.publish('one', 'first');
      await until(() => heard.includes('first'), 'the first message');
      end();
      const before = heard.length;
      const last = await listening('one', pair.b, pair.a);
      await pair.a.publish('one', 'second');
      await listening('one', pair.b, pair.a);
      last();
      expect(heard.length).toBe(before);
      expect(other).toEqual([]);
    });

    test('a handler that throws costs the others nothing', async () => {
      const heard: string[] = [];
      pair.b.subscribe('live', () => {
        throw new Error('broken handler');
      });
      pair.b.subscribe('live', (message) => heard.push(message));
      await listening('live', pair.b, pair.a);
      await pair.a.publish('live', 'still');
      await until(() => heard.includes('still'), 'the message');
    });
  });
}
