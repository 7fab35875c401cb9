import { NodeHeartbeat, type NodeOptions, PAGE, HEARTBEAT_TTL_MS } from '../redis/node-heartbeat';
import { byId } from './local';
import type { Presence, PresenceMember } from './port';

/**
 * Presence in Redis: one hash per channel, a field `<node> <id>` per connection, and one key per active node that
 * expires unless renewed, so that a dead node needs no write per connection. Readers omit the fields of dead nodes, and
 * remove them.
 */
export function createRedisPresence(options: NodeOptions): Presence {
  const { link, log, prefix } = options;
  const channelKey = (channel: string) => `${prefix}presence:${channel}`;
  const mine = new Map<string, Map<string, string>>();

  const tell = async (channel: string, members: ReadonlyMap<string, string>) => {
    const fields = [...members].flatMap(([id, info]) => [`${node.name} ${id}`, info]);
    for (let at = 0; at < fields.length; at += 2 * PAGE) {
      await link.client.hset(channelKey(channel), ...fields.slice(at, at + 2 * PAGE));
    }
    await link.client.pexpire(channelKey(channel), HEARTBEAT_TTL_MS);
  };
  const node: NodeHeartbeat = new NodeHeartbeat(options, {
    async tellAll() {
      for (const [channel, members] of [...mine]) await tell(channel, members);
    },
  });

  const own = (channel: string): PresenceMember[] => [...(mine.get(channel) ?? [])].map(([id, info]) => ({ id, info }));

  return {
    async join(channel, { id, info }) {
      let members = mine.get(channel);
      if (!members) mine.set(channel, (members = new Map()));
      members.set(id, info);
      try {
        await tell(channel, new Map([[id, info]]));
      } catch (error) {
        log.debug({ err: error }, 'presence could not be told; the next beat tells it');
        node.untold();
      }
    },
    async leave(channel, id) {
      const members = mine.get(channel);
      if (members?.delete(id) && members.size === 0) mine.delete(channel);
      try {
        await link.client.hdel(channelKey(channel), `${node.name} ${id}`);
      } catch (error) {
        log.debug({ err: error }, 'a leave could not be told; the next beat makes up for it');
        // Redis still has an entry that has ended here.
        node.outdate();
      }
    },
    async list(channel) {
      let fields: Record<string, string>;
      let living: Set<string>;
      try {
        fields = await link.client.hgetall(channelKey(channel));
        const nodes = [...new Set(Object.keys(fields).map(nodeOf))].filter((name) => name !== node.name);
        const alive = nodes.length > 0 ? await link.client.mget(...nodes.map(node.keyOf)) : [];
        living = new Set(nodes.filter((_name, index) => alive[index] !== null));
      } catch (error) {
        log.debug({ err: error }, 'presence of other nodes is unknown while Redis is away');
        return byId(own(channel));
      }
      const members = own(channel);
      const dead: string[] = [];
      for (const [field, info] of Object.entries(fields)) {
        const name = nodeOf(field);
        if (name === node.name) continue; // what this node knows of itself is newer
        if (living.has(name)) members.push({ id: field.slice(name.length + 1), info });
        else dead.push(field);
      }
      for (let at = 0; at < dead.length; at += PAGE) {
        link.client
          .hdel(channelKey(channel), ...dead.slice(at, at + PAGE))
          .catch((error: unknown) => log.debug({ err: error }, 'presence of a dead node could not be removed'));
      }
      return byId(members);
    },
    async close() {
      mine.clear();
      // Readers remove the entries of a dead node.
      await node.close();
    },
  };
}

const nodeOf = (field: string): string => field.slice(0, field.indexOf(' '));
