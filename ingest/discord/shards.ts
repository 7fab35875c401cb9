import type { Metrics } from '../../engines/metrics/port';
import type { Queryable } from '../../engines/postgres/port';
import type { LinkedConnection } from '../runtime/connection/adapter';

/** Maximum linked servers of a shard. Discord refuses a session of 2,500, unlinked ones included. */
export const MAX_GUILDS = 2_000;
const MAX_SHARDS = 1_000;
const BOT = 'discord-bot';
const SHARD = /^(\d+)\/(\d+)$/;

/** Number of a shard, and of all; Discord delivers each server to one of them. */
export type Shard = readonly [n: number, of: number];
export const ONLY_SHARD: Shard = [0, 1];

/** Number of shards, equal for all processes. */
export interface Shards {
  /** Raises a lower number to `count`, at most 1,000. Returns the number. */
  atLeast(count: number): Promise<number>;
}

export function createShards({ db, metrics }: { db: Queryable; metrics: Metrics }): Shards {
  const shown = metrics.gauge('lumio_discord_shards', "Shards over which the bot's Discord servers are divided");
  return {
    async atLeast(count) {
      const wanted = Math.min(MAX_SHARDS, Math.max(1, count));
      const [stored] = await db.query<{ shards: number }>('select shards from discord_shards', [], 'discord-shards');
      const shards = stored === undefined || stored.shards < wanted ? await raise(db, wanted) : stored.shards;
      shown.set(shards);
      return shards;
    },
  };
}

async function raise(db: Queryable, shards: number): Promise<number> {
  const [raised] = await db.query<{ shards: number }>(
    `insert into discord_shards as s (shards) values ($1)
     on conflict (one) do update set shards = greatest(s.shards, excluded.shards) returning shards`,
    [shards],
    'discord-shards-raise',
  );
  return raised!.shards;
}

/**
 * Connections of the bot, one per shard. A changed number restarts a shard, with its kept state: names stay, and the
 * first one is what a release without shards holds.
 */
export const shardConnections = (shards: number): LinkedConnection[] =>
  Array.from({ length: shards }, (_, n) => ({
    connection_id: n === 0 ? BOT : `${BOT}:${n}`,
    account_id: null,
    channel_id: 'bot',
    ...(shards > 1 && { since: `${n}/${shards}` }),
  }));

export const isBot = ({ connection_id }: Pick<LinkedConnection, 'connection_id'>): boolean =>
  connection_id === BOT || connection_id.startsWith(`${BOT}:`);

export function shardOf({ since }: Pick<LinkedConnection, 'since'>): Shard {
  const [, n, of] = SHARD.exec(since ?? '') ?? [];
  return n === undefined ? ONLY_SHARD : [Number(n), Number(of)];
}
