import { assertReadable, createUpcasters, UnreadableEvent } from '../../kernel/upcasters';

const upcasters = createUpcasters([
  { type: 'note:written', to: 3, upcast: ({ text, author }) => ({ text: text!, authors: [author!] }) },
  { type: 'note:written', to: 2, upcast: ({ body, ...rest }) => ({ ...rest, text: body! }) },
  {
    type: 'note:broken',
    to: 2,
    upcast: () => {
      throw new Error('no body');
    },
  },
]);

test('an event of any earlier version is brought up step by step', () => {
  const now = { type: 'note:written', data: { text: 'hi', authors: ['a'] } };
  expect(upcasters.read({ type: 'note:written', data: { body: 'hi', author: 'a' } })).toEqual(now);
  expect(upcasters.read({ type: 'note:written', data: { text: 'hi', author: 'a', $v: 2 } })).toEqual(now);
  expect(upcasters.read(upcasters.stamp(now))).toEqual(now);
  expect(upcasters.stamp(now).data).toEqual({ ...now.data, $v: 3 });
  const other = { type: 'note:read', data: {} };
  expect([upcasters.read(other), upcasters.stamp(other)]).toEqual([other, other]);
});

test.each([
  [{ type: 'note:written', data: { $v: 4 } }, 'stored as version 4, this program knows versions up to 3'],
  [{ type: 'note:read', data: { $v: 2 } }, 'stored as version 2, this program knows versions up to 1'],
  [{ type: 'note:broken', data: {} }, 'its upcaster failed: no body'],
])('what cannot be read is marked, keeps its data, and is refused where it would be applied', (event, why) => {
  const read = upcasters.read(event);
  expect(() => assertReadable(read)).toThrow(UnreadableEvent);
  expect(() => assertReadable(read)).toThrow(why);
  // Kept beside its mark, so that a later program reads it from the same text.
  const later = createUpcasters(
    [2, 3, 4].map((to) => ({ type: event.type, to, upcast: (data) => ({ ...data, came_by: to }) })),
  );
  expect(() => assertReadable(later.read(later.stamp(read)))).not.toThrow();
});

test('versions without a gap', () => {
  const upcast = (data: object) => data as never;
  expect(() => createUpcasters([{ type: 'x:y', to: 3, upcast }])).toThrow('version 3 follows 1');
  expect(() => createUpcasters([2, 2].map((to) => ({ type: 'x:y', to, upcast })))).toThrow('version 2 follows 2');
});
