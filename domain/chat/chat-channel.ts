import { z } from 'zod';
import { EMOTE_PROVIDERS, USER_TREATMENTS } from './chat-messages';
import { PLATFORMS } from '../common/vendors';

/**
 * Messages of `chat:<account_id>`, distinguished by `data.type`; a chat message itself has no such member. Members that
 * later releases add pass unchanged. Source: spec doc3 §6.4.
 */

const platform = z.enum(PLATFORMS);
const platform_user_id = z.string().describe("The platform's id of the person");
const deleted_by = z.string().nullable().describe('Who did it, as far as the platform tells');

/** A message as it is shown. */
export const ChatMessagePush = z
  .looseObject({
    id: z.string(),
    platform,
    platform_message_id: z.string().nullish(),
    platform_user_id: z.string().nullish(),
    username: z.string(),
    display_name: z.string().nullish(),
    avatar_url: z.string().nullish(),
    message: z.string(),
    emotes: z.array(
      z.looseObject({ id: z.string(), text: z.string(), provider: z.enum(EMOTE_PROVIDERS), url: z.string().nullish() }),
    ),
    badges: z.array(z.looseObject({ kind: z.string(), id: z.string().nullish(), image_url: z.string().nullish() })),
    reply_to_message_id: z.string().nullish(),
    reply_to_username: z.string().nullish(),
    reply_to_message: z.string().nullish(),
    is_shared_chat: z.boolean().nullish().describe("Said in another channel's room, whose chat is shared (twitch)"),
    source_channel: z
      .looseObject({
        platform_channel_id: z.string(),
        login: z.string(),
        display_name: z.string(),
        avatar_url: z.string().nullable(),
      })
      .nullish(),
    is_first_message: z.boolean().optional().describe("The author's first message in the account's own rooms"),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'ChatMessage' });

export const ChatDelete = z
  .looseObject({ type: z.literal('chat:delete'), platform_message_id: z.string(), deleted_by })
  .meta({ id: 'ChatDelete' });

export const ChatClearUser = z
  .looseObject({
    type: z.literal('chat:clear_user'),
    platform,
    platform_user_id,
    deleted_by,
    action: z.enum(['ban', 'timeout']),
    duration_secs: z.int().nullable().describe('Null: for ever'),
  })
  .meta({ id: 'ChatClearUser' });

export const ChatModerationLog = z
  .looseObject({
    type: z.literal('chat:moderation_log'),
    data: z.looseObject({
      action: z.string(),
      platform,
      target_user_id: z.string().nullable(),
      target_username: z.string().nullable(),
      moderator_name: z.string().nullable(),
    }),
  })
  .meta({ id: 'ChatModerationLog' });

export const ChatUserTreatment = z
  .looseObject({
    type: z.literal('chat:user_treatment_update'),
    platform,
    platform_user_id,
    user_treatment: z.enum(USER_TREATMENTS),
  })
  .meta({ id: 'ChatUserTreatment' });
