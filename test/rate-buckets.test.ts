import { createHash } from 'node:crypto';
import { ProvenTokens } from '../access/proven-tokens';
import { Buckets } from '../engines/rate-limits/buckets';
import { createLocalRateLimits } from '../engines/rate-limits/local';

beforeEach(() => void jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test('a bucket that says nothing any more is forgotten by itself, and an idle process has no timer', () => {
  const buckets = new Buckets<number>((ends_at, now) => ends_at <= now);
  const now = performance.now();
  for (let n = 0; n < 1_000; n += 1) buckets.set(`early ${n}`, now + 1_000);
  buckets.set('late', now + 7_000);
  jest.advanceTimersByTime(5_000);
  expect(buckets.size).toBe(1);
  expect(buckets.get('late')).toBe(now + 7_000);
  jest.advanceTimersByTime(5_000);
  expect(buckets.size).toBe(0);
  expect(jest.getTimerCount()).toBe(0);
  buckets.set('again', performance.now());
  jest.advanceTimersByTime(5_000);
  expect(buckets.size).toBe(0);
});

test('more buckets than are remembered push out the older half, never the newest', () => {
  const buckets = new Buckets<number>(() => false, 100);
  for (let n = 0; n < 1_000; n += 1) {
    buckets.set(`bucket ${n}`, n);
    expect(buckets.size).toBeLessThanOrEqual(100);
    expect(buckets.get(`bucket ${n}`)).toBe(n);
    expect(buckets.get(`bucket ${Math.max(0, n - 40)}`)).toBe(Math.max(0, n - 40));
  }
  buckets.clear();
  expect(jest.getTimerCount()).toBe(0);
});

test('a window ends a minute after its first unit, and what is given back after that counts nowhere', async () => {
  const limits = createLocalRateLimits();
  expect(await limits.take('b', 3, 3)).toMatchObject({ allowed: true, remaining: 0, reset_seconds: 60 });
  jest.advanceTimersByTime(59_000);
  expect(await limits.take('b', 1, 3)).toMatchObject({ allowed: false, reset_seconds: 1 });
  jest.advanceTimersByTime(1_001);
  await limits.giveBack('b');
  expect(await limits.take('b', 1, 3)).toMatchObject({ allowed: true, remaining: 2, reset_seconds: 60 });
  await limits.close();
});

test('tokens that were right are known again, and what their memory has no room for is merely not known', () => {
  const hashes = Array.from({ length: 40_000 }, (_, n) => createHash('sha256').update(`token ${n}`).digest('hex'));
  const proven = new ProvenTokens();
  for (const hash of hashes.slice(0, 10_000)) proven.add(hash);
  expect(hashes.slice(10_000).some((hash) => proven.has(hash))).toBe(false);
  expect(hashes.slice(0, 10_000).filter((hash) => proven.has(hash)).length).toBeGreaterThan(9_500);
  for (const hash of hashes.slice(10_000)) {
    proven.add(hash);
    expect(proven.has(hash)).toBe(true);
  }
  const last = hashes.at(-1)!;
  proven.delete(last);
  expect(proven.has(last)).toBe(false);
});
