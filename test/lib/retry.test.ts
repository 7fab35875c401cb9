import { Backoff, retry } from '../../lib/async/retry';
import { pause, Signal } from '../../lib/async/signal';

const quick = { first_ms: 1, most_ms: 4, passing: () => true };
const failing = (times: number) => {
  let left = times;
  return () => (left-- > 0 ? Promise.reject(new Error(`failure, ${left} left`)) : Promise.resolve('done'));
};

describe('pauses', () => {
  test('double from the first to the longest, drawn between half and whole, and begin anew after a success', () => {
    const backoff = new Backoff({ first_ms: 100, most_ms: 1000 });
    for (const longest of [100, 200, 400, 800, 1000, 1000]) {
      const pause_ms = backoff.next();
      expect(pause_ms).toBeGreaterThanOrEqual(longest / 2);
      expect(pause_ms).toBeLessThanOrEqual(longest);
    }
    expect(backoff.failures).toBe(6);
    backoff.reset();
    expect(backoff.next()).toBeLessThanOrEqual(100);
  });

  test('stay finite however often it fails', () => {
    const backoff = new Backoff({ first_ms: 100, most_ms: 1000 });
    for (let n = 0; n < 5000; n += 1) expect(backoff.next()).toBeLessThanOrEqual(1000);
  });
});

describe('retry', () => {
  test('answers with what the first successful try gave, and tells of every failure before it', async () => {
    const told: number[] = [];
    const work = failing(3);
    expect(await retry(work, { ...quick, onFailure: (_error, failures) => told.push(failures) })).toBe('done');
    expect(told).toEqual([1, 2, 3]);
  });

  test('throws at once what will not pass', async () => {
    let tries = 0;
    const work = () => Promise.reject(new Error(`try ${(tries += 1)}`));
    await expect(retry(work, { ...quick, passing: () => false })).rejects.toThrow('try 1');
    expect(tries).toBe(1);
  });

  test('gives up with the last failure after the tries or the time that it has', async () => {
    await expect(retry(failing(10), { ...quick, tries: 3 })).rejects.toThrow('failure, 7 left');
    await expect(retry(failing(10), { ...quick, first_ms: 1000, most_ms: 1000, within_ms: 400 })).rejects.toThrow(
      'failure, 9 left',
    );
  });

  test('tells each try its number and the time that is left', async () => {
    const seen: { number: number; left_ms: number }[] = [];
    const work = failing(2);
    await retry((attempt) => (seen.push(attempt), work()), { ...quick, within_ms: 60_000 });
    expect(seen.map(({ number }) => number)).toEqual([1, 2, 3]);
    expect(seen.every(({ left_ms }, n) => left_ms <= (seen[n - 1]?.left_ms ?? 60_000))).toBe(true);
  });

  test('waits as long as the other side asks', async () => {
    const pauses: number[] = [];
    const onFailure = (_error: unknown, _failures: number, pause_ms: number) => void pauses.push(pause_ms);
    await retry(failing(1), { ...quick, asked_ms: () => 7, onFailure });
    expect(pauses).toEqual([7]);
  });

  test('is ended in a pause by its signal, and does not begin after it', async () => {
    const stop = new AbortController();
    const waiting = retry(failing(1), {
      ...quick,
      first_ms: 60_000,
      most_ms: 60_000,
      signal: stop.signal,
      onFailure: () => setImmediate(() => stop.abort(new Error('the process stops'))),
    });
    await expect(waiting).rejects.toThrow('the process stops');
    let tries = 0;
    const work = async () => (tries += 1);
    await expect(retry(work, { ...quick, signal: stop.signal })).rejects.toThrow('the process stops');
    expect(tries).toBe(0);
  });
});

describe('a signal', () => {
  test('raised while nobody waits is kept for one wait, however often it was raised', async () => {
    const signal = new Signal();
    signal.raise();
    signal.raise();
    expect(await signal.wait(60_000)).toBe(true);
    expect(await signal.wait(1)).toBe(false);
  });

  test('wakes all who wait, and is forgotten when it is cleared', async () => {
    const signal = new Signal();
    const all = Promise.all([signal.wait(60_000), signal.wait(Infinity)]);
    signal.raise();
    expect(await all).toEqual([true, true]);
    signal.raise();
    signal.clear();
    expect(await signal.wait(1)).toBe(false);
  });

  test('a wait and a pause end when what they wait under is stopped, before or meanwhile', async () => {
    const stop = new AbortController();
    const waits = Promise.all([new Signal().wait(60_000, stop.signal), pause(60_000, stop.signal)]);
    stop.abort();
    expect(await waits).toEqual([false, undefined]);
    expect(await new Signal().wait(60_000, stop.signal)).toBe(false);
    await pause(60_000, stop.signal);
  });
});
