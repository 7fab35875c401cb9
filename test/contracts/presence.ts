import type { Presence } from '../../engines/presence/port';

export interface PresenceFixture {
  /** Two nodes: the same object twice where the engine is in-process. */
  a: Presence;
  b: Presence;
  close(): Promise<void>;
}

/** What every presence adapter keeps. */
export function presenceContract(name: string, open: () => Promise<PresenceFixture>): void {
  describe(`presence: ${name}`, () => {
    let fixture: PresenceFixture;
    beforeEach(async () => {
      fixture = await open();
    });
    afterEach(() => fixture.close());

    test('who joins is seen by every node until they leave', async () => {
      const { a, b } = fixture;
      await a.join('presence:widget:1', { id: 's2', info: '{"display_name":"Ä😀"}' });
      await b.join('presence:widget:1', { id: 's1', info: '{}' });
      await b.join('presence:widget:2', { id: 's3', info: '{}' });
      const both = [
        { id: 's1', info: '{}' },
        { id: 's2', info: '{"display_name":"Ä😀"}' },
      ];
      expect(await a.list('presence:widget:1')).toEqual(both);
      expect(await b.list('presence:widget:1')).toEqual(both);
      await a.leave('presence:widget:1', 's2');
      await a.leave('presence:widget:1', 'nobody');
      expect(await b.list('presence:widget:1')).toEqual([both[0]]);
      expect(await a.list('presence:widget:9')).toEqual([]);
    });

    test('the same connection again replaces what is seen of it', async () => {
      const { a, b } = fixture;
      await a.join('c', { id: 's1', info: '1' });
      await a.join('c', { id: 's1', info: '2' });
      expect(await b.list('c')).toEqual([{ id: 's1', info: '2' }]);
    });

    test('many come and go at once', async () => {
      const { a, b } = fixture;
      const ids = Array.from({ length: 200 }, (_, i) => `s${String(i).padStart(3, '0')}`);
      await Promise.all(ids.map((id, i) => (i % 2 ? a : b).join('crowd', { id, info: id })));
      await Promise.all(ids.slice(0, 150).map((id, i) => (i % 2 ? a : b).leave('crowd', id)));
      expect((await a.list('crowd')).map((member) => member.id)).toEqual(ids.slice(150));
    });
  });
}
