import { erasedPush } from '../domain/chat-push';
import { TOPICS } from '../domain/records';
import type { RecordEraser } from '../kernel/eraser';

/** What was told of chats without a person: the messages keep their places, and say nothing any more. */
export const chatLiveEraser: RecordEraser = {
  projection: 'chat-live',
  topic: TOPICS.chat_events,
  tables: [],
  erase: () => Promise.resolve(0),
  messages: (_tx, record_ids) => Promise.resolve(new Map(record_ids.map((id) => [id, erasedPush(id)]))),
};
