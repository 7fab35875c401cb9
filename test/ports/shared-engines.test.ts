import { createLocalCache } from '../../engines/cache/local';
import { createLocalPresence } from '../../engines/presence/local';
import { createLocalRateLimits } from '../../engines/rate-limits/local';
import { cacheContract } from '../contracts/cache';
import { presenceContract } from '../contracts/presence';
import { createLocalSlots } from '../../engines/slots/local';
import { rateLimitsContract } from '../contracts/rate-limits';
import { slotsContract } from '../contracts/slots';

const twice = <T extends { close(): Promise<void> }>(one: T) => ({ a: one, b: one, close: () => one.close() });

cacheContract('local', async () => twice(createLocalCache()));
rateLimitsContract('local', async () => twice(createLocalRateLimits()));
presenceContract('local', async () => twice(createLocalPresence()));
slotsContract('local', async () => twice(createLocalSlots()));

test('a local cache holds no more than it was given room for', async () => {
  const cache = createLocalCache(10);
  for (let i = 0; i < 50; i += 1) await cache.set(`k${i}`, 'v', 60);
  expect(await cache.get('k0')).toBeUndefined();
  expect(await cache.get('k49')).toBe('v');
});
