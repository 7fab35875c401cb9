import type { RateLimits } from '../../engines/rate-limits/port';

export interface RateLimitsFixture {
  /** Two nodes: the same object twice where the engine is in-process. */
  a: RateLimits;
  b: RateLimits;
  close(): Promise<void>;
}

/** What every rate-limit adapter keeps. */
export function rateLimitsContract(name: string, open: () => Promise<RateLimitsFixture>): void {
  describe(`rate limits: ${name}`, () => {
    let fixture: RateLimitsFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.close());

    test('exactly the limit passes, over all nodes and at once', async () => {
      const { a, b } = fixture;
      const taken = await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 2 ? a : b).take('at-once', 1, 40)));
      expect(taken.filter((state) => state.allowed)).toHaveLength(40);
      expect(taken.map((state) => state.remaining).filter((left) => left > 0)).toHaveLength(39);
      for (const state of taken) {
        expect(state.limit).toBe(40);
        expect(state.reset_seconds).toBeGreaterThanOrEqual(1);
        expect(state.reset_seconds).toBeLessThanOrEqual(60);
      }
    });

    test('a request counts by its cost, and buckets are apart', async () => {
      const { a, b } = fixture;
      expect(await a.take('cost', 7, 10)).toMatchObject({ allowed: true, remaining: 3 });
      expect(await b.take('cost', 3, 10)).toMatchObject({ allowed: true, remaining: 0 });
      expect(await a.take('cost', 1, 10)).toMatchObject({ allowed: false, remaining: 0 });
      expect(await a.take('another', 1, 10)).toMatchObject({ allowed: true, remaining: 9 });
    });

    test('a unit that was given back can be taken again, by any node', async () => {
      const { a, b } = fixture;
      for (let i = 0; i < 3; i += 1) await a.take('held', 1, 3);
      expect(await b.take('held', 1, 3)).toMatchObject({ allowed: false });
      await a.giveBack('held');
      await b.giveBack('held');
      expect(await b.take('held', 1, 3)).toMatchObject({ allowed: true, remaining: 0 });
      expect(await a.take('held', 1, 3)).toMatchObject({ allowed: false });
    });

    test('one bucket may be asked with another limit, as when a plan changes', async () => {
      const { a, b } = fixture;
      await a.take('plan', 5, 5);
      expect(await b.take('plan', 1, 5)).toMatchObject({ allowed: false });
      expect(await b.take('plan', 1, 100)).toMatchObject({ allowed: true, limit: 100, remaining: 93 });
    });

    test('a pace lets a minute through at once and then a unit when it is due, over all nodes', async () => {
      const { a, b } = fixture;
      const waits: number[] = [];
      const began_at = performance.now();
      for (let i = 0; i < 125; i += 1) waits.push(await (i % 2 ? a : b).pace('paced', 120));
      expect(waits.slice(0, 120)).toEqual(Array<number>(120).fill(0));
      const took_ms = performance.now() - began_at;
      // One every half a second, less what was refilled meanwhile.
      waits.slice(120).forEach((ms, i) => {
        expect(ms).toBeLessThanOrEqual(500 * (i + 1));
        expect(ms).toBeGreaterThan(500 * (i + 1) - took_ms - 10);
      });
      expect(await a.pace('another pace', 120)).toBe(0);
      expect(await a.take('paced', 1, 120)).toMatchObject({ remaining: 119 });
    });

    test('a pace counts several units at once', async () => {
      const { a, b } = fixture;
      for (let i = 0; i < 12; i += 1) expect(await (i % 2 ? a : b).pace('dear', 60, 5)).toBe(0);
      const wait_ms = await a.pace('dear', 60, 5);
      expect(wait_ms).toBeGreaterThan(3_000);
      expect(wait_ms).toBeLessThanOrEqual(5_000);
    });

    test('nobody waits longer than 20 s for a pace, whoever else does', async () => {
      const { a } = fixture;
      const waits = await Promise.all(Array.from({ length: 40 }, () => a.pace('crowded pace', 10)));
      expect(Math.max(...waits)).toBe(20_000);
      expect(await a.pace('crowded pace', 10)).toBe(20_000);
    });
  });
}
