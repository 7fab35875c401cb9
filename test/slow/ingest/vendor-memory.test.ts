import { firstSubject, storageLimitViolation, MAX_PERSONS } from '../../../ingest/runtime/parse/storage-limits';
import { keptId } from '../../../ingest/runtime/webhook/webhook';
import { type Known, knownAfter, NOTHING_KNOWN } from '../../../ingest/twitch/looks/known';
import { DuplicateModerationFilter } from '../../../ingest/twitch/double-reports/duplicate-moderation';

/** Longer than any id of a vendor's, as long as a frame may be. */
const LONG = 'x'.repeat(1_000_000);

describe('whatever a vendor sends, what is remembered of it stays small', () => {
  test('acts of moderators that wait for their twins', () => {
    const twins = new DuplicateModerationFilter();
    const single = Reflect.get(twins, 'single') as Map<string, unknown[]>;
    for (let n = 0; n < 5_000; n += 1) twins.isSecond('channel.ban', { user_id: '1' }, n);
    for (let n = 0; n < 5_000; n += 1) twins.isSecond('channel.ban', { user_id: String(n) }, n);
    twins.isSecond('channel.ban', { user_id: LONG }, 5_000);
    expect(single.size).toBeLessThanOrEqual(256);
    expect(Math.max(...[...single.values()].map(({ length }) => length))).toBeLessThanOrEqual(8);
    expect([...single.keys()].join('').length).toBeLessThan(10_000);
    // A twin among them is still known.
    const moderate = { action: 'ban', ban: { user_id: '4999' } };
    expect(twins.isSecond('channel.moderate', moderate, 5_000)).toBe(true);
  });

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
