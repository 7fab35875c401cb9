import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

/** The chats of an account's channels, joined. */
export const chat = channel({
  pattern: 'chat:<account_id>',
  gate: permission('chat:read'),
  flag: 'feature:multichat',
  writable: 'chat:write',
  message_type: 'chat:message',
});
