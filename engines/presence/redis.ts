import { randomUUID } from 'node:crypto';
import type { Logger } from '../log/port';
import type { RedisLink } from '../redis/connection';
import { byId } from './local';
import type { Presence, PresenceMember } from './port';

export interface RedisPresenceOptions {
  link: RedisLink;
  prefix: string;
  log: Logger;
  /** A node that has not been heard of for this long is dead. Default 10 s. */
  node_ttl_ms?: number;
}

/** Channels live this long after they were last told of; a living node tells of its own again at a third of it. */
const CHANNEL_TTL_MS = 3_600_000;
/** Fields sent in one command. */
const PAGE = 500;

/**
 * Presence in Redis: one hash per channel, a field `<node> <id>` per connection, and one key per living node that
 * expires unless the node renews it: a dead node costs nobody a write per connection. Readers leave out the fields of
 * dead nodes, and remove them.
 */
export function createRedisPresence(options: RedisPresenceOptions): Presence {
  const { link, log, node_ttl_ms = 10_000 } = options;
  let node = randomUUID();
  const channelKey = (channel: string) => `${options.prefix}presence:${channel}`;
  const nodeKey = (name: string) => `${options.prefix}node:${name}`;
  const mine = new Map<string, Map<string, string>>();
  let told_at = 0;
  /** A leave did not reach Redis: the node's entries there hold one too many. */
  let outdated = false;
  let beating = false;
  let closed = false;

  const tell = async (channel: string, members: ReadonlyMap<string, string>) => {
    const fields = [...members].flatMap(([id, info]) => [`${node} ${id}`, info]);
    for (let at = 0; at < fields.length; at += 2 * PAGE) {
      await link.client.hset(channelKey(channel), ...fields.slice(at, at + 2 * PAGE));
    }
    await link.client.pexpire(channelKey(channel), CHANNEL_TTL_MS);
  };

  /** Says that this node lives; tells of all its connections when Redis had forgotten it, or it is time to. */
  async function beat(): Promise<void> {
    if (beating || closed || !link.usable()) return;
    beating = true;
    try {
      if (outdated) {
        // Under a new name everything told before counts as a dead node's; readers remove it.
        await link.client.del(nodeKey(node));
        node = randomUUID();
        outdated = false;
      }
      const known = await link.client.set(nodeKey(node), '1', 'PX', node_ttl_ms, 'GET');
      if (known === null || Date.now() - told_at > CHANNEL_TTL_MS / 3) {
        told_at = Date.now();
        for (const [channel, members] of [...mine]) await tell(channel, members);
      }
    } catch (error) {
      log.debug({ err: error }, 'presence could not be renewed; it is tried again');
      // Told of in part at best: all of it goes again with the next beat.
      told_at = 0;
    } finally {
      beating = false;
    }
  }
  /** A new connection may be to a server that has forgotten everything. */
  const again = () => {
    told_at = 0;
    void beat();
  };
  const end = link.onReady(again);
  const timer = setInterval(() => void beat(), node_ttl_ms / 4);
  timer.unref();
  if (link.usable()) void beat();

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
        told_at = 0;
      }
    },
    async leave(channel, id) {
      const members = mine.get(channel);
      if (members?.delete(id) && members.size === 0) mine.delete(channel);
      try {
        await link.client.hdel(channelKey(channel), `${node} ${id}`);
      } catch (error) {
        log.debug({ err: error }, 'a leave could not be told; the next beat makes up for it');
        outdated = true;
      }
    },
    async list(channel) {
      let fields: Record<string, string>;
      let living: Set<string>;
      try {
        fields = await link.client.hgetall(channelKey(channel));
        const nodes = [...new Set(Object.keys(fields).map(nodeOf))].filter((name) => name !== node);
        const alive = nodes.length > 0 ? await link.client.mget(...nodes.map(nodeKey)) : [];
        living = new Set(nodes.filter((_name, index) => alive[index] !== null));
      } catch (error) {
        log.debug({ err: error }, 'presence of other nodes is unknown while Redis is away');
        return byId(own(channel));
      }
      const members = own(channel);
      const dead: string[] = [];
      for (const [field, info] of Object.entries(fields)) {
        const name = nodeOf(field);
        if (name === node) continue; // what this node knows of itself is newer
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
      closed = true;
      clearInterval(timer);
      end();
      mine.clear();
      // Without its key the node counts as dead, and readers remove the rest.
      await link.client
        .del(nodeKey(node))
        .catch((error: unknown) => log.debug({ err: error }, 'presence ends when its key expires'));
    },
  };
}

const nodeOf = (field: string): string => field.slice(0, field.indexOf(' '));
