import { LRUCache } from 'lru-cache';
import type { Queryable } from '../../engines/postgres/port';

/** Silence after which another subscription may take the place. Its twins of late deliveries are stale by then. */
const SILENT_MINUTES = 60;
/** Period in which a process neither reads nor renews a subscription that it knows. */
const KNOWN_MS = 60_000;
const MAX_KNOWN = 10_000;
const KEPT_HOURS = 24;

/** Selects one subscription for each type of a channel whose own subscriptions are not known. */
export interface FirstSubscriptions {
  /**
   * True for the subscription that delivered this type first.
   * @throws the error of the database
   */
  counts(channel_id: string, type: string, subscription_id: string): Promise<boolean>;
}

export function createFirstSubscriptions(db: Queryable): FirstSubscriptions {
  const known = new LRUCache<string, string>({ max: MAX_KNOWN, ttl: KNOWN_MS });
  return {
    async counts(channel_id, type, subscription_id) {
      const key = `${channel_id}:${type}`;
      const remembered = known.get(key);
      if (remembered !== undefined) return remembered === subscription_id;
      const counts = (await claim(channel_id, type, subscription_id)) === subscription_id;
      // Renewed just now, so that no other subscription can take its place within this period.
      if (counts) known.set(key, subscription_id);
      return counts;
    },
  };

  /** Returns the subscription that counts: the caller's, or another one that delivered within the hour. */
  async function claim(channel_id: string, type: string, subscription_id: string): Promise<string> {
    const [row] = await db.query<{ subscription_id: string }>(
      `insert into kick_first_subscriptions as f (channel_id, type, subscription_id, seen_at)
       values ($1, $2, $3, clock_timestamp())
       on conflict (channel_id, type) do update set
         subscription_id = case when f.seen_at < excluded.seen_at - make_interval(mins => $4)
                                then excluded.subscription_id else f.subscription_id end,
         seen_at = case when f.subscription_id = excluded.subscription_id
                          or f.seen_at < excluded.seen_at - make_interval(mins => $4)
                        then excluded.seen_at else f.seen_at end
       returning subscription_id`,
      [channel_id, type, subscription_id, SILENT_MINUTES],
      'kick-first-subscription',
    );
    return row!.subscription_id;
  }
}

/** Deletes subscriptions without a recent delivery. Returns their number. */
export async function trimFirstSubscriptions(db: Queryable): Promise<number> {
  const rows = await db.query(
    'delete from kick_first_subscriptions where seen_at < now() - make_interval(hours => $1) returning channel_id',
    [KEPT_HOURS],
  );
  return rows.length;
}
