import { firstSubject, storageLimitViolation, MAX_PERSONS } from '../../../ingest/runtime/parse/storage-limits';
import { keptId } from '../../../ingest/runtime/webhook/webhook';
import { type Known, knownAfter, NOTHING_KNOWN } from '../../../ingest/twitch/looks/known';

/** Longer than any id of a vendor's, as long as a frame may be. */
const LONG = 'x'.repeat(1_000_000);

describe('whatever a vendor sends, what is remembered of it stays small', () => {
  test('goals and what else goes on on a channel', () => {
    const goal = (known: Known, id: string, current_amount: number) =>
      knownAfter(known, 'channel.goal.progress', { id, current_amount });
    let known = NOTHING_KNOWN;
    for (let n = 0; n < 1_000; n += 1) known = goal(known, `goal-${n}`, n);
    expect(Object.keys(known.goals)).toHaveLength(16);
    expect(known.goals['goal-999']).toBe(999);
    expect(goal(known, LONG, 1)).toBe(known);
    for (const type of ['stream.online', 'channel.hype_train.begin', 'channel.poll.begin', 'channel.prediction.begin'])
      known = knownAfter(known, type, { id: LONG });
    expect(JSON.stringify(known).length).toBeLessThan(2_000);
  });

  test('ids', () => {
    expect([keptId(LONG), keptId(' 7 '), keptId(7), keptId({ toString: '' })]).toEqual([null, '7', '7', null]);
  });
});

test('a record that names more persons than its header holds is not stored', () => {
  const naming = (count: number) => ({
    raw: '{}',
    subject: 'kick:0',
    subjects: Array.from({ length: count }, (_, n) => `kick:${n + 1}`),
  });
  expect(storageLimitViolation([naming(MAX_PERSONS - 1)])).toBeNull();
  expect(storageLimitViolation([naming(MAX_PERSONS)])).toMatchObject({ reason: 'too_many_persons' });
  expect(firstSubject([{ subject: null }, naming(1)])).toBe('kick:0');
});
