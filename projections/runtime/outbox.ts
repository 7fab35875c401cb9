import { type Queryable, type Statement, textArray } from '../../engines/postgres/port';
import type { ChannelMessage } from '../../kernel/projection';
import { hashOfName, shardOf } from '../../kernel/shards';

/** The wake-up that realtime nodes wait for; sent after the commit, never inside it. */
export const OUTBOX_WAKEUP = 'outbox';

/**
 * Stores channel messages by {@link outboxStatement} in the caller's transaction; returns the newest id, null without
 * messages.
 */
export async function writeOutbox(tx: Queryable, messages: readonly ChannelMessage[]): Promise<number | null> {
  const statement = outboxStatement(messages);
  if (!statement) return null;
  const [row] = await tx.query(statement.text, statement.values, statement.name);
  return row!.newest;
}

/**
 * What stores channel messages; null without any. It must be the transaction's last statement: from here to the commit
 * the locks of the messages' shards order all projectors, so that ids are in commit order within a shard and every
 * channel's `seq` is dense. Design §7. `trace` is the traceparent of the batch: null when its messages keep their own,
 * absent when tracing is off and none is stored.
 */
export function outboxStatement(messages: readonly ChannelMessage[], trace?: string | null): Statement | null {
  if (messages.length === 0) return null;
  const channels = new Map<string, { place: number; shard: number }>();
  const places: number[] = [];
  const types: string[] = [];
  const data: string[] = [];
  for (const message of messages) {
    let channel = channels.get(message.channel);
    if (!channel) {
      channel = { place: channels.size + 1, shard: shardOf(message.channel, message.account_id) };
      channels.set(message.channel, channel);
    }
    places.push(channel.place);
    types.push(message.event_type);
    data.push(message.data);
  }
  const names = [...channels.keys()];
  const shards = [...channels.values()].map(({ shard }) => shard);
  const lists = [textArray(names), shards, names.map(hashOfName), places, textArray(types), textArray(data)];
  if (trace === undefined) {
    return { text: 'select outbox_append($1, $2, $3, $4, $5, $6) as newest', values: lists, name: 'outbox_append' };
  }
  const traces = textArray(messages.map((message) => trace ?? message.trace ?? null));
  return {
    text: 'select outbox_append($1, $2, $3, $4, $5, $6, $7) as newest',
    values: [...lists, traces],
    name: 'outbox_append_traced',
  };
}
