import type { Slots } from '../../engines/slots/port';
import { PATIENCE_MS } from '../support/patience';

export interface SlotsFixture {
  /** Two nodes: the same object twice where the engine is in-process. */
  a: Slots;
  b: Slots;
  close(): Promise<void>;
}

/** What every adapter of slots keeps. */
export function slotsContract(name: string, open: () => Promise<SlotsFixture>): void {
  describe(`slots: ${name}`, () => {
    let fixture: SlotsFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.close());

    async function takes(slots: Slots, bucket: string, limit: number, count: number): Promise<boolean[]> {
      const taken: boolean[] = [];
      for (let n = 0; n < count; n += 1) taken.push(await slots.take(bucket, limit));
      return taken;
    }

    /** Other nodes hear within moments of what was given back. */
    async function freed(slots: Slots, bucket: string, limit: number): Promise<void> {
      const deadline = Date.now() + PATIENCE_MS;
      while (!(await slots.take(bucket, limit))) {
        if (Date.now() > deadline) throw new Error('no slot is free');
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }

    test('the limit holds over all nodes, and a slot that was given back is free for any', async () => {
      const { a, b } = fixture;
      expect(await takes(a, 'some', 5, 3)).toEqual([true, true, true]);
      expect(await takes(b, 'some', 5, 3)).toEqual([true, true, false]);
      expect(await takes(a, 'some', 5, 2)).toEqual([false, false]);
      expect(await a.take('others', 5)).toBe(true);
      a.giveBack('some');
      await freed(b, 'some', 5);
      expect(await b.take('some', 5)).toBe(false);
      b.giveBack('some');
      b.giveBack('some');
      await freed(a, 'some', 5);
      await freed(a, 'some', 5);
      expect(await a.take('some', 5)).toBe(false);
    });

    test('many who come to one node at once are as many as the limit', async () => {
      const { a } = fixture;
      const taken = await Promise.all(Array.from({ length: 300 }, () => a.take('crowd', 100)));
      expect(taken.filter(Boolean)).toHaveLength(100);
      for (let n = 0; n < 100; n += 1) a.giveBack('crowd');
      expect(await takes(a, 'crowd', 100, 101)).toEqual([...Array<boolean>(100).fill(true), false]);
    });

    test('many who come to two nodes at once are as many as the limit, and those refused take nobody his place', async () => {
      const nodes = [fixture.a, fixture.b];
      const taken = await Promise.all(Array.from({ length: 100 }, (_, n) => nodes[n % 2]!.take('rush', 60)));
      expect(taken.filter(Boolean)).toHaveLength(60);
      nodes[taken.indexOf(true) % 2]!.giveBack('rush');
      await freed(fixture.b, 'rush', 60);
      for (const node of nodes) expect(await node.take('rush', 60)).toBe(false);
    });
  });
}
