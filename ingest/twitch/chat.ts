import type { ChatBadge, ChatMessageDraft, ChatPart, ChatRecord } from '../../domain/chat/chat-messages';
import { CHAT_ROLES } from '../../domain/chat/chat-messages';
import { textParts } from '../../domain/chat/chat-text';
import { idText, numberOf } from '../runtime/webhook/webhook';
import { isObject, type Members } from './frame';
import { personAt, textAt } from './people';

type Role = (typeof CHAT_ROLES)[number];

/** Badges that are roles under another name. */
const ROLE_OF: ReadonlyMap<string, Role> = new Map<string, Role>([
  ...CHAT_ROLES.map((role) => [role, role] as const),
  ['lead_moderator', 'moderator'],
  ['artist-badge', 'artist'],
  ['partner', 'verified'],
]);

/** Chat message from `channel.chat.message`, or from a notice of the chat that is not one of our events. */
export function chatMessage(event: Members, channel_id: string, message_type: string): ChatMessageDraft {
  const badges = badgesOf(event['badges']);
  const message = isObject(event['message']) ? event['message'] : {};
  const { text, action } = saidIn(textAt(message, 'text') ?? '');
  return {
    kind: 'message',
    platform: 'twitch',
    channel_id,
    shared_chat: sharedChat(event),
    message_id: idText(event['message_id']),
    live_chat_id: null,
    author: event['chatter_is_anonymous'] === true ? null : personAt(event, 'chatter_user'),
    color: textAt(event, 'color'),
    badges,
    roles: [...new Set(badges.flatMap(({ kind }) => ROLE_OF.get(kind) ?? []))],
    message_type,
    text,
    system_text: textAt(event, 'system_message'),
    parts: partsOf(message['fragments'], text),
    action,
    reply: replyOf(event['reply']),
    paid: cheerOf(event['cheer']),
    reward_id: textAt(event, 'channel_points_custom_reward_id'),
  };
}

/** Delimiters of a `/me` message: IRC's marks of an act, around the text and not around its fragments. */
const [ACT, ACT_END] = ['\u0001ACTION ', '\u0001'];

function saidIn(written: string): { text: string; action: boolean } {
  if (!written.startsWith(ACT)) return { text: written, action: false };
  const end = written.endsWith(ACT_END) ? -ACT_END.length : written.length;
  return { text: written.slice(ACT.length, end), action: true };
}

/** Source channel of a message in a shared room, when it is not ours. */
export function sharedChat(event: Members): ChatRecord['shared_chat'] {
  const channel = personAt(event, 'source_broadcaster_user');
  if (channel === null || channel.id === event['broadcaster_user_id']) return null;
  return {
    channel,
    message_id: idText(event['source_message_id']),
    badges: badgesOf(event['source_badges']),
  };
}

function badgesOf(badges: unknown): ChatBadge[] {
  if (!Array.isArray(badges)) return [];
  return badges.flatMap((badge: unknown) => {
    if (!isObject(badge)) return [];
    const kind = textAt(badge, 'set_id');
    if (kind === null) return [];
    return [{ kind, id: idText(badge['id']), info: textAt(badge, 'info'), image_url: null }];
  });
}

/** Parts of a message; a message without fragments is text. */
function partsOf(fragments: unknown, text: string): ChatPart[] {
  if (!Array.isArray(fragments) || fragments.length === 0) return textParts(text);
  return fragments.flatMap((fragment: unknown) => (isObject(fragment) ? partOf(fragment) : []));
}

function partOf(fragment: Members): ChatPart[] {
  const text = typeof fragment['text'] === 'string' ? fragment['text'] : '';
  const { emote, cheermote, mention, gif } = fragment;
  if (isObject(emote)) {
    const id = idText(emote['id']);
    const animated = Array.isArray(emote['format']) && emote['format'].includes('animated');
    if (id !== null) return [{ type: 'emote', text, id, provider: 'twitch', url: emoteUrl(id), animated }];
  }
  if (isObject(cheermote)) {
    const [prefix, bits, tier] = [
      textAt(cheermote, 'prefix') ?? '',
      whole(cheermote['bits']),
      whole(cheermote['tier']),
    ];
    return [{ type: 'cheermote', text, prefix, bits, tier }];
  }
  if (isObject(mention)) {
    const { id = null, username = null } = personAt(mention, 'user') ?? {};
    return [{ type: 'mention', text, user_id: id, username }];
  }
  if (isObject(gif)) {
    const [id, url] = [idText(gif['id']) ?? '', textAt(gif, 'url')];
    return [{ type: 'gif', text, id, provider: textAt(gif, 'provider') ?? 'twitch', url }];
  }
  return textParts(text);
}

const emoteUrl = (id: string): string =>
  `https://static-cdn.jtvnw.net/emoticons/v2/${encodeURIComponent(id)}/default/dark/2.0`;

function replyOf(reply: unknown): ChatMessageDraft['reply'] {
  if (!isObject(reply)) return null;
  const message_id = idText(reply['parent_message_id']);
  if (message_id === null) return null;
  const body = textAt(reply, 'parent_message_body');
  return {
    message_id,
    text: body === null ? null : saidIn(body).text,
    author: personAt(reply, 'parent_user'),
    thread_message_id: idText(reply['thread_message_id']),
  };
}

function cheerOf(cheer: unknown): ChatMessageDraft['paid'] {
  if (!isObject(cheer)) return null;
  const amount_minor = whole(cheer['bits']);
  if (amount_minor === 0) return null;
  return { kind: 'bits', amount_minor, currency: 'BITS', display: null, tier: null, sticker_id: null };
}

function whole(value: unknown): number {
  const number = numberOf(value);
  return Number.isSafeInteger(number) ? number : 0;
}
