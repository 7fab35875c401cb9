import { readAhead } from '../../lib/async/read-ahead';
import { yieldToEventLoop } from '../../lib/async/signal';

/** Gives these sizes one by one; notes each that it was asked for, and its end. */
function sizes(list: number[], failure?: Error) {
  const seen: (number | 'end')[] = [];
  async function* source() {
    try {
      for (const size of list) {
        seen.push(size);
        yield { size };
      }
      if (failure) throw failure;
    } finally {
      seen.push('end');
    }
  }
  return { seen, items: (bound: number) => readAhead(source(), bound, ({ size }) => size) };
}

/** What was under way has had its turn: the source waits for nothing else. */
const settled = async () => {
  for (let n = 0; n < 5; n += 1) await yieldToEventLoop();
};

test('gives all in their order, however fast they are taken', async () => {
  const { items } = sizes([1, 0, 5, 2, 0]);
  const taken: number[] = [];
  for await (const { size } of items(3)) {
    if (size === 5) await settled();
    taken.push(size);
  }
  expect(taken).toEqual([1, 0, 5, 2, 0]);
});

test('reads on while one is worked on, until those that wait reach the bound', async () => {
  const { seen, items } = sizes([4, 1, 1, 2, 9, 9]);
  const reader = items(4);
  expect((await reader.next()).value).toEqual({ size: 4 });
  await settled();
  expect(seen).toEqual([4, 1, 1, 2]);
  expect((await reader.next()).value).toEqual({ size: 1 });
  await settled();
  expect(seen).toEqual([4, 1, 1, 2, 9]);
  await reader.return();
});

test('throws what the source throws, after all that came before', async () => {
  const { items } = sizes([1, 2], new Error('no more'));
  const reader = items(10);
  expect((await reader.next()).value).toEqual({ size: 1 });
  await settled();
  expect((await reader.next()).value).toEqual({ size: 2 });
  await expect(reader.next()).rejects.toThrow('no more');
});

test('ends its source when the caller stops, or fails', async () => {
  const { seen, items } = sizes([1, 2, 3]);
  const failing = async () => {
    for await (const { size } of items(1)) throw new Error(`at ${size}`);
  };
  await expect(failing()).rejects.toThrow('at 1');
  expect(seen.at(-1)).toBe('end');
});

test('an empty source is at its end at once', async () => {
  const { items } = sizes([]);
  expect(await items(1).next()).toEqual({ value: undefined, done: true });
});
