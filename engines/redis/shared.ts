import type { Cache } from '../cache/port';
import { createRedisCache } from '../cache/redis';
import type { Logger } from '../log/port';
import type { Metrics } from '../metrics/port';
import type { Presence } from '../presence/port';
import { createRedisPresence } from '../presence/redis';
import type { RateLimits } from '../rate-limits/port';
import { createRedisRateLimits } from '../rate-limits/redis';
import type { Relay } from '../relay/port';
import { createRedisRelay } from '../relay/redis';
import type { Slots } from '../slots/port';
import { createRedisSlots } from '../slots/redis';
import { connectRedis, type RedisLinkOptions } from './connection';

/** Engines that nodes share besides the database. */
export interface SharedEngines {
  relay: Relay;
  cache: Cache;
  rate_limits: RateLimits;
  presence: Presence;
  slots: Slots;
  close(): Promise<void>;
}

export interface RedisEnginesOptions {
  url: string;
  /** The installation's id: several installations may share one server. */
  installation: string;
  log: Logger;
  metrics: Metrics;
}

/** Timeout of the commands of requests; a broadcast may take longer before it counts as lost. */
const COMMAND_MS = 100;
const PUBLISH_MS = 500;
const SUBSCRIBE_MS = 2_000;
/** Longest wait of a start for Redis; then the start continues without it. */
const OPEN_MS = 2_000;

/** Relay, cache, limits and presence over Redis or Valkey: three links, each of which recovers by itself. */
export async function createRedisEngines(options: RedisEnginesOptions): Promise<SharedEngines> {
  const { url, log, metrics } = options;
  const prefix = `lumio:${options.installation}:`;
  const open = (name: string, command_timeout_ms: number): ReturnType<typeof connectRedis> => {
    const link: RedisLinkOptions = { url, name, log, metrics, command_timeout_ms };
    return connectRedis(link);
  };
  const commands = open('commands', COMMAND_MS);
  const publisher = open('publisher', PUBLISH_MS);
  const subscriber = open('subscriber', SUBSCRIBE_MS);
  const links = [commands, publisher, subscriber];
  const relay = createRedisRelay({ publisher, subscriber, prefix, log, metrics });
  const cache = createRedisCache({ link: commands, prefix, log });
  const rate_limits = createRedisRateLimits({ link: commands, prefix });
  const presence = createRedisPresence({ link: commands, prefix, log });
  const slots = createRedisSlots({ link: commands, prefix, log });
  await Promise.all(links.map((link) => link.opened(OPEN_MS)));
  return {
    relay,
    cache,
    rate_limits,
    presence,
    slots,
    async close() {
      await relay.close();
      await presence.close();
      await slots.close();
      await rate_limits.close();
      await cache.close();
      for (const link of links) await link.close();
    },
  };
}
