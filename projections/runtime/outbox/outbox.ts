import { intArray, type Queryable, type Statement, textArray } from '../../../engines/postgres/port';
import type { ChannelMessage } from '../../../kernel/projection';
import { hashOfName, shardOf } from '../../../lib/hash/shards';

/** Wake-up that realtime nodes wait for; sent after the commit, never inside it. */
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
 * Returns the statement that stores channel messages; null without messages. It must be the transaction's last
 * statement: from here to the commit the locks of the messages' shards order all projectors, so that ids are in commit
 * order within a shard and every channel's `seq` is dense. Design §7. `trace` is the traceparent of the batch: null
 * when its messages keep their own, absent when tracing is off and none is stored.
 */
export function outboxStatement(messages: readonly ChannelMessage[], trace?: string | null): Statement | null {
  if (messages.length === 0) return null;
  const channels = new Map<string, { place: number; shard: number; count: number }>();
  const places: number[] = [];
  const numbers: number[] = [];
  const types: string[] = [];
  const data: string[] = [];
  for (const message of messages) {
    let channel = channels.get(message.channel);
    if (!channel) {
      channel = { place: channels.size + 1, shard: shardOf(message.channel, message.account_id), count: 0 };
      channels.set(message.channel, channel);
    }
    channel.count += 1;
    places.push(channel.place);
    numbers.push(channel.count);
    types.push(message.event_type);
    data.push(message.data);
  }
  const names = [...channels.keys()];
  const shards = [...channels.values()].map(({ shard }) => shard);
  const counts = [...channels.values()].map(({ count }) => count);
  const of_channels = [textArray(names), ...[shards, names.map(hashOfName), counts].map(intArray)];
  const lists = [...of_channels, intArray(places), intArray(numbers), textArray(types), textArray(data)];
  if (trace === undefined) return appending(lists, 'outbox_append');
  return appending(
    [...lists, textArray(messages.map((message) => trace ?? message.trace ?? null))],
    'outbox_append_traced',
  );
}

function appending(values: readonly unknown[], name: string): Statement {
  const parameters = values.map((_, n) => `$${n + 1}`).join(', ');
  return { text: `select outbox_append_numbered(${parameters}) as newest`, values, name };
}
