import type { Logger } from '../log/port';
import type { RedisLink } from '../redis/connection';
import type { Cache } from './port';

/** Most pending invalidations; with more of them the whole cache is dropped when Redis is available again. */
const MAX_PENDING = 10_000;
const RETRY_MS = 1_000;

/**
 * A cache that all nodes share. While Redis is unavailable every read is a miss. A failed invalidation is kept and
 * repeated as soon as Redis answers; until then the key is a miss on this node, and on the others at most as old as its
 * lifetime allows.
 */
export function createRedisCache(options: { link: RedisLink; prefix: string; log: Logger }): Cache {
  const { link, log } = options;
  const prefix = `${options.prefix}cache:`;
  const stale = new Set<string>();
  let all_stale = false;
  let draining = false;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;

  function remember(key: string): void {
    if (stale.size < MAX_PENDING) stale.add(key);
    else all_stale = true;
    retry ??= setTimeout(() => {
      retry = undefined;
      void drain();
    }, RETRY_MS).unref();
  }

  async function drain(): Promise<void> {
    if (draining || closed || (stale.size === 0 && !all_stale) || !link.usable()) return;
    draining = true;
    try {
      if (all_stale) {
        let cursor = '0';
        do {
          const [next, keys] = await link.client.scan(cursor, 'MATCH', `${prefix}*`, 'COUNT', 500);
          if (keys.length > 0) await link.client.unlink(...keys);
          cursor = next;
        } while (cursor !== '0');
        all_stale = false;
        stale.clear();
      }
      for (const key of [...stale]) {
        await link.client.del(prefix + key);
        stale.delete(key);
      }
    } catch (error) {
      log.debug({ err: error }, 'invalidations of the cache wait until Redis answers');
    } finally {
      draining = false;
      const [key] = stale;
      if (!closed && (key !== undefined || all_stale)) remember(key ?? '');
    }
  }
  const end = link.onReady(() => void drain());

  return {
    async get(key) {
      if (all_stale || stale.has(key)) return undefined;
      try {
        return (await link.client.get(prefix + key)) ?? undefined;
      } catch (error) {
        log.debug({ err: error }, 'the cache did not answer: a miss');
        return undefined;
      }
    },
    async set(key, value, ttl_seconds) {
      try {
        await link.client.set(prefix + key, value, 'PX', Math.max(1, Math.round(ttl_seconds * 1000)));
      } catch (error) {
        log.debug({ err: error }, 'the cache did not take a value');
      }
    },
    async delete(key) {
      try {
        await link.client.del(prefix + key);
      } catch (error) {
        log.debug({ err: error }, 'the cache did not take an invalidation; it is made up for');
        remember(key);
      }
    },
    async ping() {
      try {
        return (await link.client.ping()) === 'PONG';
      } catch (error) {
        log.debug({ err: error }, 'the cache did not answer a ping');
        return false;
      }
    },
    async close() {
      closed = true;
      clearTimeout(retry);
      end();
    },
  };
}
