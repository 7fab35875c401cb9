import { randomUUID } from 'node:crypto';
import { createRedisCache } from '../../../engines/cache/redis';
import { createPrometheusMetrics } from '../../../engines/metrics/prometheus';
import { createRedisPresence } from '../../../engines/presence/redis';
import { createRedisRateLimits } from '../../../engines/rate-limits/redis';
import { connectRedis } from '../../../engines/redis/connection';
import type { NodeOptions } from '../../../engines/redis/node-heartbeat';
import { createRedisEngines } from '../../../engines/redis/shared';
import { createRedisSlots } from '../../../engines/slots/redis';
import { cacheContract } from '../../contracts/cache';
import { presenceContract } from '../../contracts/presence';
import { rateLimitsContract } from '../../contracts/rate-limits';
import { relayContract } from '../../contracts/relay';
import { slotsContract } from '../../contracts/slots';
import { silentLog as log } from '../../support/log';
import { PATIENCE_MS } from '../../support/patience';
import { type RedisServer, startRedis } from '../support/redis';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const metrics = () => createPrometheusMetrics({});
const open = (url: string, installation: string) => createRedisEngines({ url, installation, log, metrics: metrics() });

/** Two nodes with the command timeout of a busy machine. */
async function pair<Part extends { close(): Promise<void> }>(make: (on: NodeOptions) => Part) {
  const prefix = `lumio:${randomUUID()}:`;
  const node = async () => {
    const patient = { command_timeout_ms: PATIENCE_MS, silent_ms: PATIENCE_MS };
    const link = connectRedis({ url: redis.url, name: 'contract', log, metrics: metrics(), ...patient });
    await link.opened(PATIENCE_MS);
    return { part: make({ link, prefix, log }), link };
  };
  const both = [await node(), await node()] as const;
  const close = async () => {
    for (const { part, link } of both) {
      await part.close();
      await link.close();
    }
  };
  return { a: both[0].part, b: both[1].part, close };
}
relayContract('redis', async () => {
  const installation = randomUUID();
  const [one, two] = await Promise.all([open(redis.url, installation), open(redis.url, installation)]);
  const close = async () => {
    await one.close();
    await two.close();
  };
  return { a: one.relay, b: two.relay, close };
});
cacheContract('redis', () => pair(createRedisCache));
rateLimitsContract('redis', () => pair(createRedisRateLimits));
presenceContract('redis', () => pair(createRedisPresence));
slotsContract('redis', () => pair(createRedisSlots));
