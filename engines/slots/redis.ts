import { NodeHeartbeat, type NodeOptions, PAGE, HEARTBEAT_TTL_MS } from '../redis/node-heartbeat';
import { SlotCounts } from './local';
import type { Slots } from './port';

/**
 * Sums the counts of active nodes in a bucket's hash (KEYS[1], a field per node), with ARGV[2] as the count of this
 * node (ARGV[1]), and stores that count when the sum is within the limit (ARGV[3]). Removes the counts of dead nodes.
 */
const TAKE = `
local held = tonumber(ARGV[2])
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if fields[i] ~= ARGV[1] then
    if redis.call('EXISTS', ARGV[4] .. fields[i]) == 1 then held = held + tonumber(fields[i + 1])
    else redis.call('HDEL', KEYS[1], fields[i]) end
  end
end
if held > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return 1`;

/**
 * Slots that all nodes share: one hash per bucket with the count of each node. A node's own count is exact, so that a
 * node above the limit refuses without Redis. The whole count is sent each time, so that a later write repairs a lost
 * one.
 */
export function createRedisSlots(options: NodeOptions): Slots {
  const { link, log, prefix } = options;
  const counts = new SlotCounts();
  /** Buckets whose count differs from the count in Redis. */
  const untold = new Set<string>();
  let reporting = false;
  const keyOf = (bucket: string) => `${prefix}slots:${bucket}`;

  const node: NodeHeartbeat = new NodeHeartbeat(options, {
    async tellAll() {
      for (const bucket of counts.buckets()) untold.add(bucket);
    },
    onBeat: () => tell(),
  });

  async function tell(): Promise<void> {
    if (reporting || !link.usable()) return;
    reporting = true;
    try {
      while (untold.size > 0) {
        const page = [...untold].slice(0, PAGE);
        for (const bucket of page) untold.delete(bucket);
        const commands = link.client.pipeline();
        for (const bucket of page) {
          const count = counts.of(bucket);
          if (count === 0) commands.hdel(keyOf(bucket), node.name);
          else commands.hset(keyOf(bucket), node.name, count).pexpire(keyOf(bucket), HEARTBEAT_TTL_MS);
        }
        const outcomes = (await commands.exec()) ?? [[new Error('nothing was sent'), null] as const];
        const failed = outcomes.find(([error]) => error !== null);
        if (failed === undefined) continue;
        for (const bucket of page) untold.add(bucket);
        throw failed[0]!;
      }
    } catch (error) {
      log.debug({ err: error }, 'counts of slots could not be told; the next beat tells them');
    } finally {
      reporting = false;
    }
  }

  function changed(bucket: string): void {
    untold.add(bucket);
    if (untold.size === 1) setImmediate(() => void tell());
  }

  function giveBack(bucket: string): void {
    counts.remove(bucket);
    changed(bucket);
  }

  return {
    async take(bucket, limit) {
      if (counts.of(bucket) >= limit) return false;
      const count = counts.add(bucket);
      if (!link.usable()) {
        untold.add(bucket);
        return true;
      }
      try {
        const parameters = [node.name, count, limit, node.keyOf(''), HEARTBEAT_TTL_MS];
        if ((await link.client.eval(TAKE, 1, keyOf(bucket), ...parameters)) === 1) return true;
        giveBack(bucket);
        return false;
      } catch (error) {
        log.debug({ err: error }, 'slots are counted by this node alone while Redis is away');
        untold.add(bucket);
        return true;
      }
    },
    giveBack,
    close: () => node.close(),
  };
}
