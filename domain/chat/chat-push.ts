import type { z } from 'zod';
import type { ChatClearUser, ChatDelete, ChatMessagePush, ChatModerationLog, ChatUserTreatment } from './chat-channel';
import type { ChatMessage, ChatModeration, ChatPart, ChatPerson, ChatRecord } from './chat-messages';
import type { RecordEnvelope } from '../common/records';

/** A message of `chat:<account_id>`. */
export interface ChatPush {
  event_type: string;
  /** JSON text; it begins with the record's `id`, by which an erasure finds it. */
  data: string;
}

interface Facts extends Pick<RecordEnvelope, 'id' | 'account_id' | 'occurred_at'> {
  /** The first message of its author in the account's own rooms. */
  is_first_message?: boolean;
}

/** Live messages of a chat record (spec doc3 §6.4): the message, or the consequences of a moderator's act. */
export function chatPush(record: ChatRecord, facts: Facts): ChatPush[] {
  const { id, account_id, occurred_at, is_first_message = false } = facts;
  const push = (event_type: string, data: object): ChatPush => ({
    event_type,
    data: JSON.stringify({ id, ...data }),
  });
  switch (record.kind) {
    case 'message':
      return [push('chat:message', { account_id, ...shownMessage(record, occurred_at), is_first_message })];
    case 'moderation':
      return moderationOf(record, occurred_at).map((data) => push(data.type, data));
    case 'treatment': {
      const { platform, user, user_treatment } = record;
      const type = 'chat:user_treatment_update';
      const data = { type, platform, platform_user_id: user.id ?? '', user_treatment } as const;
      return [push(type, data satisfies z.input<typeof ChatUserTreatment>)];
    }
  }
}

/** Replacement of a channel message after the erasure of a person in it. */
export const erasedPush = (id: string): string => JSON.stringify({ id, type: 'chat:erased' });

/** Display name of a nameless sender. */
const NOBODY = 'Anonymous';
const nameOf = (person: ChatPerson | null): string =>
  person === null ? NOBODY : (person.username ?? person.display_name ?? person.id ?? NOBODY);

/** A message as it is shown, besides its id and account. */
export function shownMessage(record: ChatMessage, created_at: string): Omit<z.input<typeof ChatMessagePush>, 'id'> {
  const { platform, author, reply, shared_chat, parts } = record;
  return {
    platform,
    channel_id: record.channel_id,
    platform_message_id: record.message_id,
    live_chat_id: record.live_chat_id,
    platform_user_id: author?.id ?? null,
    username: nameOf(author),
    display_name: author?.display_name ?? nameOf(author),
    avatar_url: author?.avatar_url ?? null,
    message: record.text,
    message_type: record.message_type,
    system_message: record.system_text,
    parts,
    emotes: emotesIn(parts),
    badges: record.badges,
    roles: record.roles,
    color: record.color,
    action: record.action,
    paid: record.paid,
    reward_id: record.reward_id,
    reply_to_message_id: reply?.message_id ?? null,
    reply_to_user_id: reply?.author?.id ?? null,
    reply_to_username: reply === null ? null : nameOf(reply.author),
    reply_to_message: reply?.text ?? null,
    ...(shared_chat && {
      is_shared_chat: true,
      source_channel: {
        platform_channel_id: shared_chat.channel.id ?? '',
        login: shared_chat.channel.username ?? '',
        display_name: shared_chat.channel.display_name ?? nameOf(shared_chat.channel),
        avatar_url: shared_chat.channel.avatar_url,
      },
    }),
    created_at,
  };
}

/** The emotes among the parts of a message, in their order. */
export const emotesIn = (parts: readonly ChatPart[]) =>
  parts.flatMap((part) =>
    part.type === 'emote' ? [{ id: part.id, text: part.text, provider: part.provider, url: part.url }] : [],
  );

type Moderated = z.input<typeof ChatDelete> | z.input<typeof ChatClearUser> | z.input<typeof ChatModerationLog>;

/** Prefix of the names of acts in a shared room. */
const SHARED = 'shared_chat_';

/** A moderator's act, in whichever room of a shared chat. */
export const actOf = ({ action }: Pick<ChatModeration, 'action'>): string =>
  action.startsWith(SHARED) ? action.slice(SHARED.length) : action;

function moderationOf(record: ChatModeration, created_at: string): Moderated[] {
  const { platform, target, moderator, message_id, duration_secs } = record;
  const act = actOf(record);
  const deleted_by = moderator === null ? null : nameOf(moderator);
  const messages: Moderated[] = [];
  if (act === 'delete' && message_id !== null) {
    messages.push({ type: 'chat:delete', platform_message_id: message_id, deleted_by });
  }
  if ((act === 'ban' || act === 'timeout') && target?.id) {
    const platform_user_id = target.id;
    const for_ever = act === 'ban';
    messages.push({
      type: 'chat:clear_user',
      platform,
      platform_user_id,
      deleted_by,
      action: act,
      duration_secs: for_ever ? null : duration_secs,
    });
  }
  return [...messages, { type: 'chat:moderation_log', data: logEntry(record, created_at) }];
}

/** Entry of the moderation log. */
export function logEntry(record: ChatModeration, created_at: string): z.input<typeof ChatModerationLog>['data'] {
  const { action, platform, target, moderator, message_id, text, reason, duration_secs, ends_at, shared_chat } = record;
  return {
    action,
    platform,
    target_user_id: target?.id ?? null,
    target_username: target === null ? null : nameOf(target),
    moderator_id: moderator?.id ?? null,
    moderator_name: moderator === null ? null : nameOf(moderator),
    platform_message_id: message_id,
    message: text,
    reason,
    duration_secs,
    ends_at,
    source_channel_id: shared_chat?.channel.id ?? null,
    created_at,
  };
}
