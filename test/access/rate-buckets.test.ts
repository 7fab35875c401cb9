import type { FastifyReply } from 'fastify';
import { createHash } from 'node:crypto';
import type { Caller, RequestUnits } from '../../access/authentication/caller';
import { createRateLimiter } from '../../access/limits/rate-limiter';
import { RecentlyValidTokens } from '../../access/authentication/memory/recently-valid-tokens';
import { createLimiter } from '../../api/http/rate-limit';
import { emitEvent, testEvent } from '../../commands/events/events';
import type { Metrics } from '../../engines/metrics/port';
import { Buckets } from '../../engines/rate-limits/buckets';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import { silentLog } from '../support/log';

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
  const proven = new RecentlyValidTokens();
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

const metrics = { counter: () => ({ inc: () => undefined }) } as unknown as Metrics;

test('all keys of an account share a bucket beside their own; sessions and other accounts do not', async () => {
  const limits = createLocalRateLimits();
  const limiter = createLimiter(createRateLimiter({ limits, log: silentLog, metrics }));
  const reply = { headers: () => undefined, request: {} } as unknown as FastifyReply;
  const count = (given: Partial<Caller>, cost: number) =>
    limiter.countCaller(
      { kind: 'user_api_key', account_id: 'one', rate_limit: 1_200, ...given } as Caller,
      cost,
      reply,
    );
  for (let n = 0; n < 5; n += 1) await count({ rate_bucket: `key:${n}` }, 1_200);
  const refused = { code: 'RATE_LIMIT_EXCEEDED', retry_after_seconds: 60 };
  for (const kind of ['user_api_key', 'service_key'] as const)
    await expect(count({ kind, rate_bucket: `other ${kind}` }, 1)).rejects.toMatchObject(refused);
  const client = { client_id: 'c', grant_id: null, scopes: [] };
  await expect(count({ kind: 'jwt', client, rate_bucket: 'client:c' }, 1)).rejects.toMatchObject(refused);
  await count({ kind: 'jwt', rate_bucket: 'user:ada' }, 1);
  for (let n = 0; n < 5; n += 1) await count({ kind: 'overlay', rate_bucket: `overlay:${n}` }, 1_200);
  for (const kind of ['popout', 'overlay', 'shared_overlay', 'extension', 'widget'] as const)
    await expect(count({ kind, rate_bucket: `other ${kind}` }, 1)).rejects.toMatchObject(refused);
  await count({ account_id: 'another', rate_bucket: 'key:another' }, 1);
  await limits.close();
});

test('what the own bucket of a token refuses costs its account nothing', async () => {
  const local = createLocalRateLimits();
  const taken: string[] = [];
  const take: typeof local.take = (bucket, ...rest) => (taken.push(bucket), local.take(bucket, ...rest));
  const limiter = createLimiter(createRateLimiter({ limits: { ...local, take }, log: silentLog, metrics }));
  const reply = { headers: () => undefined, request: {} } as unknown as FastifyReply;
  const overlay = { kind: 'overlay', account_id: 'one', rate_bucket: 'leaked', rate_limit: 2 } as Caller;
  const calls = Array.from({ length: 9 }, async () => limiter.countCaller(overlay, 1, reply));
  const answers = await Promise.allSettled(calls);
  expect(answers.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
  expect(taken.filter((bucket) => bucket !== 'leaked')).toEqual(['account-tokens:one', 'account-tokens:one']);
  await local.close();
});

test('an emitted event is counted in KiB against its credential', async () => {
  const taken: unknown[] = [];
  const units: RequestUnits = {
    take: async (...one) => void taken.push(one),
    moveTo: async () => undefined,
    refusal: () => null,
  };
  const context = { now: 0, idempotency_seed: null, units };
  const refuse = (code: string) => new Error(code);
  const services = {
    live: { broadcast: async () => undefined },
    records: { append: async () => new Map() },
    awaitShown: async () => undefined,
    db: { query: async (_text: string, _values: unknown, name: string) => (name === 'emitted-bytes' ? [{}] : found) },
    settings: { requests: { emitted_bytes: 20 * 1024 * 1024 } },
  };
  let found: object[] = [];
  const run = (
    command: typeof emitEvent | typeof testEvent,
    caller: Partial<Caller>,
    characters: number,
    seed = {},
  ) => {
    const input = { event_type: 'custom:flood', raw: { text: 'x'.repeat(characters) } };
    const call = { input, caller, context: { ...context, ...seed }, refuse };
    return command.run(call as never, services as never);
  };
  const key = {
    kind: 'service_key',
    account_id: 'one',
    credential_id: 'key-1',
    rate_bucket: 'key',
    rate_limit: 1_200,
  } as const;
  await run(emitEvent, key, 20_000);
  await run(testEvent, key, 10_000);
  await run(
    testEvent,
    { kind: 'system_key', account_id: 'one', credential_id: null, rate_bucket: 'system', rate_limit: null },
    10_000,
  );
  // An event that is refused for its length, and one that was stored before.
  await expect(run(testEvent, key, 50_000)).rejects.toThrow('EVENT_TOO_LARGE');
  found = [{ raw: '{}', created_at: '2026-01-01T00:00:00Z' }];
  await run(emitEvent, key, 20_000, { idempotency_seed: 'again' });
  expect(taken).toEqual([
    [{ rate_bucket: 'emitted:key-1', rate_limit: 20 * 1024 }, 20],
    [{ rate_bucket: 'tested:key-1', rate_limit: 20 * 1024 }, 10],
    [{ rate_bucket: 'tested:system', rate_limit: null }, 10],
  ]);
});
