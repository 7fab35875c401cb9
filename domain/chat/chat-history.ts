import { z } from 'zod';
import { PLATFORMS } from '../common/vendors';
import { CHAT_ROLES, EMOTE_PROVIDERS } from './chat-messages';

/** Difference between a message's time and its place above which it has an index of its own, in microseconds. */
export const LATE_MICROS = 60_000_000;

/** Stands for the person of an anonymous message in counts. */
export const NOBODY = '00000000-0000-0000-0000-000000000000';

/** Action of an entry of the moderation log whose act named a person who was erased. */
export const ERASED_ACT = 'erased';

/** Parts of answers about an account's chat history. Source: spec extra facts §11, doc3 §6.4. */

const platform = z.enum(PLATFORMS);

const ChatHistoryEmote = z
  .object({
    id: z.string(),
    text: z.string(),
    provider: z.enum(EMOTE_PROVIDERS),
    url: z.string().nullable(),
  })
  .meta({ id: 'ChatHistoryEmote' });

const ChatHistoryBadge = z
  .object({
    kind: z.string().describe("The platform's own word"),
    id: z.string().nullable(),
    info: z.string().nullable(),
    image_url: z.string().nullable(),
  })
  .meta({ id: 'ChatHistoryBadge' });

const ChatSourceChannel = z
  .object({
    platform_channel_id: z.string(),
    login: z.string(),
    display_name: z.string(),
    avatar_url: z.string().nullable(),
  })
  .meta({ id: 'ChatSourceChannel' });

/** A stored chat message. */
export const ChatHistoryMessage = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    platform,
    channel_id: z.string().nullable().describe("The platform's id of the channel; null after an erasure"),
    platform_message_id: z.string().nullable(),
    live_chat_id: z.string().nullable().describe('YouTube: the id of the live chat'),
    platform_user_id: z.string().nullable().describe('Null of an anonymous author'),
    username: z.string(),
    display_name: z.string(),
    avatar_url: z.string().nullable(),
    message: z.string(),
    message_type: z.string().describe("`text`, or the platform's word for another kind"),
    system_message: z.string().nullable().describe('Text that the platform adds'),
    parts: z.unknown().describe('The message in pieces: text, emotes, mentions, links, cheermotes'),
    emotes: z.array(ChatHistoryEmote),
    badges: z.array(ChatHistoryBadge),
    roles: z.array(z.enum(CHAT_ROLES)),
    color: z.string().nullable(),
    action: z.boolean().describe('Said as an act (`/me`)'),
    paid: z.unknown().describe('The amount paid with it; null of other messages'),
    reward_id: z.string().nullable(),
    reply_to_message_id: z.string().nullable(),
    reply_to_user_id: z.string().nullable(),
    reply_to_username: z.string().nullable(),
    reply_to_message: z.string().nullable(),
    is_shared_chat: z.boolean().describe("Said in another channel's room, whose chat is shared (twitch)"),
    source_channel: ChatSourceChannel.nullable(),
    is_first_message: z.boolean(),
    is_erased: z.boolean().describe('It named a person who was erased, so that its content is gone'),
    deleted_at: z.iso.datetime().nullable(),
    deleted_by: z.string().nullable(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'ChatHistoryMessage' });
export type ChatHistoryMessage = z.input<typeof ChatHistoryMessage>;

/** An act of a moderator. */
export const ModerationLogEntry = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    platform,
    action: z
      .string()
      .describe("The platform's own word: `ban`, `timeout`, `delete`, `slow`; `erased` where a person was erased"),
    target_user_id: z.string().nullable(),
    target_username: z.string().nullable(),
    moderator_id: z.string().nullable(),
    moderator_name: z.string().nullable(),
    platform_message_id: z.string().nullable(),
    message: z.string().nullable(),
    reason: z.string().nullable(),
    duration_secs: z.int().nullable(),
    ends_at: z.string().nullable(),
    source_channel_id: z.string().nullable(),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'ModerationLogEntry' });
export type ModerationLogEntry = z.input<typeof ModerationLogEntry>;
