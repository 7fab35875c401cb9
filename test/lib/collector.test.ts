import { Collector, fitting, slices } from '../../lib/async/collector';

/** A collector whose groups leave when the test says so. */
function staged(take?: (waiting: readonly number[]) => { count: number; group: readonly number[] }) {
  const groups: { items: readonly number[]; answer(outcomes: (number | Error)[]): void; fail(error: Error): void }[] =
    [];
  const collector = new Collector<number, number>({
    take,
    send: (items) => new Promise((answer, fail) => groups.push({ items, answer, fail })),
  });
  return { collector, groups };
}
const turns = async () => {
  for (let n = 0; n < 3; n += 1) await new Promise(setImmediate);
};

describe('a collector', () => {
  test('sends what came in one turn together, and what comes meanwhile as the next group, in order', async () => {
    const { collector, groups } = staged();
    const first = Promise.all([collector.add(1), collector.add(2)]);
    await turns();
    const second = Promise.all([collector.add(3), collector.add(4)]);
    await turns();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2]]);
    expect(collector.waiting).toBe(2);
    groups[0]!.answer([10, 20]);
    expect(await first).toEqual([10, 20]);
    await turns();
    expect(groups.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    groups[1]!.answer([30, 40]);
    expect(await second).toEqual([30, 40]);
    await collector.idle();
  });

  test('a caller that was answered joins the group that leaves next', async () => {
    const { collector, groups } = staged();
    const chain = collector.add(1).then(() => collector.add(3));
    await turns();
    void collector.add(2);
    groups[0]!.answer([0]);
    await turns();
    expect(groups[1]!.items).toEqual([2, 3]);
    groups[1]!.answer([0, 0]);
    await chain;
  });

  test('one item fails alone, a group fails whole, and the next one leaves all the same', async () => {
    const { collector, groups } = staged();
    const one = Promise.allSettled([collector.add(1), collector.add(2)]);
    await turns();
    const two = Promise.allSettled([collector.add(3)]);
    groups[0]!.answer([new Error('the first'), 20]);
    expect(await one).toMatchObject([{ reason: { message: 'the first' } }, { value: 20 }]);
    await turns();
    groups[1]!.fail(new Error('all'));
    expect(await two).toMatchObject([{ reason: { message: 'all' } }]);
    const three = collector.add(4);
    await turns();
    groups[2]!.answer([40]);
    expect(await three).toBe(40);
  });

  test('takes only as many as it is told to', async () => {
    const { collector, groups } = staged((waiting) => ({ count: 2, group: waiting.slice(0, 2) }));
    const all = Promise.all([1, 2, 3].map((item) => collector.add(item)));
    await turns();
    groups[0]!.answer([1, 2]);
    await turns();
    expect(groups.map(({ items }) => items)).toEqual([[1, 2], [3]]);
    groups[1]!.answer([3]);
    expect(await all).toEqual([1, 2, 3]);
  });
});

test('as many items as fit are taken, and at least one', () => {
  const sizeOf = (bytes: number) => ({ items: 1, bytes });
  expect(fitting([5, 5, 5], { items: 10, bytes: 10 }, sizeOf)).toBe(2);
  expect(fitting([5, 5, 5], { items: 1, bytes: 100 }, sizeOf)).toBe(1);
  expect(fitting([50, 5], { items: 10, bytes: 10 }, sizeOf)).toBe(1);
  expect(fitting([50, 5], { items: 10, bytes: 10 }, sizeOf, 1)).toBe(1);
  expect(fitting([], { items: 10, bytes: 10 }, sizeOf)).toBe(0);
});

test('all items are cut into groups that fit, in order', () => {
  const sizeOf = (bytes: number) => ({ items: 1, bytes });
  expect([...slices([5, 5, 50, 1, 2], { items: 2, bytes: 10 }, sizeOf)]).toEqual([[5, 5], [50], [1, 2]]);
  expect([...slices([], { items: 2, bytes: 10 }, sizeOf)]).toEqual([]);
});
