import type { Cache } from '../../engines/cache/port';
import { PATIENCE_MS } from '../support/patience';

export interface CacheFixture {
  /** Two nodes: the same object twice where the engine is in-process. */
  a: Cache;
  b: Cache;
  close(): Promise<void>;
}

/** What every cache adapter keeps. */
export function cacheContract(name: string, open: () => Promise<CacheFixture>): void {
  describe(`cache: ${name}`, () => {
    let fixture: CacheFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.close());

    test('a value is read by every node until it is deleted', async () => {
      const { a, b } = fixture;
      expect(await a.get('k')).toBeUndefined();
      await a.set('k', 'Ä€😀\n"', 60);
      expect(await b.get('k')).toBe('Ä€😀\n"');
      await b.set('k', '', 60);
      expect(await a.get('k')).toBe('');
      await b.delete('k');
      await b.delete('k');
      expect(await a.get('k')).toBeUndefined();
    });

    test('a value ends with its lifetime, and keys do not touch each other', async () => {
      const { a, b } = fixture;
      await Promise.all([a.set('short', '1', 0.2), a.set('long', '2', 60)]);
      const deadline = Date.now() + PATIENCE_MS;
      while ((await b.get('short')) !== undefined && Date.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(await b.get('short')).toBeUndefined();
      expect(await b.get('long')).toBe('2');
    });

    test('it answers a ping', async () => {
      expect(await fixture.a.ping()).toBe(true);
    });
  });
}
