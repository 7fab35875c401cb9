import {
  ChatClearUser,
  ChatDelete,
  ChatMessagePush,
  ChatModerationLog,
  ChatUserTreatment,
} from '../../domain/chat/chat-channel';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

export const chat = channel({
  pattern: 'chat:<account_id>',
  summary: "The chats of an account's channels, joined; dispatch on `data.type`.",
  carries: {
    'chat:message': {
      summary: 'A message, without `data.type`; `chat:erased` stands there where somebody was erased since.',
      data: ChatMessagePush,
    },
    'chat:delete': { summary: 'One message was deleted: grey it out.', data: ChatDelete },
    'chat:clear_user': { summary: 'Somebody was banned or timed out: grey their messages out.', data: ChatClearUser },
    'chat:moderation_log': { summary: 'An entry of the moderation log.', data: ChatModerationLog },
    'chat:user_treatment_update': { summary: 'Somebody is watched, restricted or neither.', data: ChatUserTreatment },
  },
  gate: permission('chat:read'),
  flag: 'feature:multichat',
  writable: 'chat:write',
  message_type: 'chat:message',
});
