import type { RequestContext } from '../../access/authentication/caller';
import { waitForReadModels } from '../../app/read-your-writes';
import { READERS } from '../../bin/areas';
import { createReadModels } from '../../projections/runtime/status/read-models';

afterEach(() => jest.useRealTimers());

test('a request of many acts waits once for read models that stand still, not for each of its acts', async () => {
  jest.useFakeTimers();
  const read_models = createReadModels({
    db: { query: async () => [] },
    events: { compare: (a, b) => Number(a) - Number(b) },
    wakeups: { notify: () => undefined, on: () => () => undefined, close: async () => undefined },
  });
  const context: Pick<RequestContext, 'behind_until'> = {};
  const ended = (position: number) =>
    waitForReadModels(read_models, READERS, context, {
      position: String(position),
      types: ['session:ended', 'account:member_removed'],
    });
  let over = false;
  const acts = (async () => {
    const answers = [await ended(1), ...(await Promise.all([ended(2), ended(3)])), await ended(4), await ended(5)];
    over = true;
    return answers;
  })();
  let waited = 0;
  for (; !over; waited += 100) await jest.advanceTimersByTimeAsync(100);
  expect(await acts).toEqual([false, false, false, false, false]);
  // 2 s as every wait, and 10 s for all of them since it was about rights.
  expect(waited).toBeGreaterThanOrEqual(12_000);
  expect(waited).toBeLessThanOrEqual(12_200);
  read_models.close();
});

/** Statements that so many waits make while other projections wake them 20 times. */
async function statementsOf(waits: number): Promise<number> {
  jest.useFakeTimers();
  let statements = 0;
  let wake: () => void = () => undefined;
  const read_models = createReadModels({
    db: {
      query: async () => {
        statements += 1;
        return [];
      },
    },
    events: { compare: (a, b) => Number(a) - Number(b) },
    wakeups: {
      notify: () => undefined,
      on: (_, listener) => {
        wake = () => listener(true);
        return () => undefined;
      },
      close: async () => undefined,
    },
  });
  const all = Promise.all(Array.from({ length: waits }, () => read_models.passed('1', ['api-keys'])));
  for (let n = 0; n < 20; n += 1) {
    await jest.advanceTimersByTimeAsync(5);
    wake();
  }
  await jest.advanceTimersByTimeAsync(3000);
  expect(await all).toEqual(Array.from({ length: waits }, () => false));
  read_models.close();
  jest.useRealTimers();
  return statements;
}

test('two hundred waits look at the checkpoints together: no more statements than one wait makes', async () => {
  const one = await statementsOf(1);
  expect(one).toBeGreaterThan(10);
  expect(await statementsOf(200)).toBeLessThanOrEqual(one + 2);
});
