import type { Settings } from '../kernel/settings/settings';
import { createLocalCache } from './cache/local';
import type { Logger } from './log/port';
import type { Metrics } from './metrics/port';
import { createLocalPresence } from './presence/local';
import { createLocalRateLimits } from './rate-limits/local';
import type { SharedEngines } from './redis/shared';
import { createLocalRelay } from './relay/local';
import { createLocalSlots } from './slots/local';

/** Opens the engines that nodes share besides the database: over Redis when configured, else within this process. */
export async function openShared(options: {
  settings: Pick<Settings, 'redis'>;
  installation: string;
  log: Logger;
  metrics: Metrics;
}): Promise<SharedEngines> {
  const { settings, installation, log, metrics } = options;
  if (settings.redis.url !== undefined) {
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- loaded by installations that use it
    const { createRedisEngines } = require('./redis/shared') as typeof import('./redis/shared');
    return createRedisEngines({ url: settings.redis.url, installation, log, metrics });
  }
  const parts = {
    relay: createLocalRelay({ log }),
    cache: createLocalCache(),
    rate_limits: createLocalRateLimits(),
    presence: createLocalPresence(),
    slots: createLocalSlots(),
  };
  return {
    ...parts,
    async close() {
      for (const part of Object.values(parts)) await part.close();
    },
  };
}
