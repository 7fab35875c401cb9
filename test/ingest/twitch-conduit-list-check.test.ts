import { ListCheck } from '../../ingest/twitch/conduit/list-check';

const CONFIRM_MS = 600;

/** Verdicts on lists, one every 100 ms; a negative size is a list that may lack channels. */
function verdicts(...sizes: number[]): boolean[] {
  const check = new ListCheck(CONFIRM_MS);
  return sizes.map((size, n) => check.isConfirmed(Math.abs(size), size >= 0, n * 100));
}
const times = (count: number, size: number) => Array.from({ length: count }, () => size);

describe('a list of connected channels', () => {
  test('is confirmed once it has lasted, and then with each small change', () => {
    expect(verdicts(...times(7, 100), 101, 92)).toEqual([...times(6, 0).map(Boolean), true, true, true]);
  });

  test('that is much shorter is not confirmed by a second one, and the next whole one is', () => {
    expect(verdicts(...times(7, 100), 50, 50, 50, 100).slice(-4)).toEqual([false, false, false, true]);
  });

  test('that stays much shorter is confirmed in the end', () => {
    const found = verdicts(...times(7, 100), ...times(8, 50)).slice(7);
    expect(found).toEqual([...times(6, 0).map(Boolean), true, true]);
  });

  test('that shrinks again while it is short must last again', () => {
    expect(verdicts(...times(7, 100), ...times(6, 50), ...times(6, 20), 20).slice(7)).toEqual([
      ...times(12, 0).map(Boolean),
      true,
    ]);
  });

  test('that may lack channels changes nothing', () => {
    expect(verdicts(...times(7, 100), -10, 10, -10, 100).slice(-4)).toEqual([false, false, false, true]);
  });
});
