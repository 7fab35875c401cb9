import { shownInstant } from '../domain/instants';
import { chatChannel, readChatRecord } from '../domain/chat-messages';
import { chatPush } from '../domain/chat-push';
import { TOPICS } from '../domain/records';
import type { Queryable } from '../engines/postgres/port';
import type { LoggedRecord } from '../engines/records/port';
import { type ApplyMode, type ChannelMessage, projection, topic } from '../kernel/projection';

/** Tells on `chat:<account_id>` what happens in the chats of an account, once. It keeps nothing. */
export const chatLive = projection({
  name: 'chat-live',
  version: 1,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [],
  apply(batch: readonly LoggedRecord[], _tx: Queryable, mode: ApplyMode): Promise<ChannelMessage[]> {
    if (mode.rebuilding || mode.loading) return Promise.resolve([]);
    return Promise.resolve(batch.flatMap(messagesOf));
  },
});

function messagesOf(record: LoggedRecord): ChannelMessage[] {
  const read = readChatRecord(record);
  if (read === null) return [];
  const { account_id, trace } = record;
  const facts = { id: record.id.toLowerCase(), account_id, occurred_at: shownInstant(record.occurred_at) };
  return chatPush(read, facts).map((push) => ({ channel: chatChannel(account_id), ...push, trace }));
}
