import {
  type ChatBadge,
  type ChatDraft,
  type ChatPart,
  type ChatPerson,
  CHAT_ROLES,
  chatPerson,
  PLAIN_MESSAGE,
  PLAIN_MODERATION,
} from '../../domain/chat/chat-messages';
import { textOfParts, textParts } from '../../domain/chat/chat-text';
import { until } from '../runtime/parse/times';
import { idText, member } from '../runtime/webhook/webhook';

/** An emote in Kick's notation within the text. */
const EMOTE = /\[emote:(\d{1,20}):([^\]\s]{0,100})\]/g;
const MAX_EMOTES = 500;

/** Converts `chat.message.sent` to a chat record. */
export function kickMessage(channel_id: string, payload: unknown): ChatDraft {
  const at = (...path: string[]) => member(payload, ...path);
  const author = personAt(at('sender'));
  const badges = badgesOf(at('sender', 'identity', 'badges'));
  const parts = partsOf(textAt(at('content')) ?? '', at('emotes'));
  const parent = at('replies_to');
  const parent_id = idText(member(parent, 'message_id'));
  return {
    ...PLAIN_MESSAGE,
    platform: 'kick',
    channel_id,
    message_id: idText(at('message_id')),
    author,
    color: colorOf(at('sender', 'identity', 'username_color')),
    badges,
    roles: rolesOf(badges, at('sender', 'is_verified') === true, author?.id === channel_id),
    message_type: 'text',
    text: textOfParts(parts),
    parts,
    reply:
      parent_id === null
        ? null
        : {
            message_id: parent_id,
            text: textAt(member(parent, 'content')),
            author: personAt(member(parent, 'sender')),
            thread_message_id: null,
          },
  };
}

/** Converts `moderation.banned`; a ban without an end is permanent. */
export function kickBan(channel_id: string, payload: unknown, sent_at: string | null): ChatDraft {
  const at = (...path: string[]) => member(payload, ...path);
  const timeout = until(at('metadata', 'expires_at'), at('metadata', 'created_at'), at('created_at'), sent_at);
  return {
    ...PLAIN_MODERATION,
    platform: 'kick',
    channel_id,
    action: timeout.ends_at === null ? 'ban' : 'timeout',
    target: personAt(at('banned_user')),
    moderator: personAt(at('moderator')),
    reason: textAt(at('metadata', 'reason')),
    ...timeout,
  };
}

const textAt = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const filled = (value: unknown): string | null => textAt(value)?.trim() || null;

function personAt(value: unknown): ChatPerson | null {
  const id = idText(member(value, 'user_id'));
  // Kick writes 0 for a missing person.
  if (id === null || id === '0') return null;
  const name = filled(member(value, 'username'));
  return chatPerson(id, filled(member(value, 'channel_slug')) ?? name, name, filled(member(value, 'profile_picture')));
}

function badgesOf(value: unknown): ChatBadge[] {
  return (Array.isArray(value) ? value : []).flatMap((badge) => {
    const kind = filled(member(badge, 'type'));
    const id = idText(member(badge, 'count'));
    return kind === null ? [] : [{ kind, id, info: filled(member(badge, 'text')), image_url: null }];
  });
}

function rolesOf(badges: readonly ChatBadge[], is_verified: boolean, is_broadcaster: boolean) {
  const has = new Set(badges.map(({ kind }) => (kind === 'og' ? 'founder' : kind)));
  if (is_verified) has.add('verified');
  if (is_broadcaster) has.add('broadcaster');
  return CHAT_ROLES.filter((role) => has.has(role));
}

function colorOf(value: unknown): string | null {
  const text = filled(value);
  return text !== null && /^#[0-9a-f]{6}$/i.test(text) ? text.toUpperCase() : null;
}

const emote = (id: string, name: string): ChatPart => ({
  type: 'emote',
  text: name === '' ? id : name,
  id,
  provider: 'kick',
  url: `https://files.kick.com/emotes/${encodeURIComponent(id)}/fullsize`,
  animated: false,
});

/** Finds the emotes in the text; without any, those of the positions. */
function partsOf(content: string, emotes: unknown): ChatPart[] {
  const parts: ChatPart[] = [];
  let from = 0;
  for (const found of content.matchAll(EMOTE)) {
    parts.push(...textParts(content.slice(from, found.index)), emote(found[1]!, found[2]!));
    from = found.index + found[0].length;
  }
  if (from > 0) return [...parts, ...textParts(content.slice(from))];
  return partsByPosition(content, emotes);
}

/** Positions count characters and include the last one; a position outside the text is skipped. */
function partsByPosition(content: string, emotes: unknown): ChatPart[] {
  const characters = [...content];
  const places = (Array.isArray(emotes) ? emotes : [])
    .flatMap((one) => {
      const id = idText(member(one, 'emote_id'));
      const positions = member(one, 'positions');
      if (id === null || !Array.isArray(positions)) return [];
      return positions.map((position) => ({ id, s: member(position, 's'), e: member(position, 'e') }));
    })
    .filter((place): place is { id: string; s: number; e: number } => isPlace(place, characters.length))
    .slice(0, MAX_EMOTES)
    .sort((one, other) => one.s - other.s);
  const parts: ChatPart[] = [];
  let from = 0;
  for (const { id, s, e } of places) {
    if (s < from) continue;
    parts.push(...textParts(characters.slice(from, s).join('')), emote(id, characters.slice(s, e + 1).join('')));
    from = e + 1;
  }
  return [...parts, ...textParts(characters.slice(from).join(''))];
}

const isPlace = ({ s, e }: { s: unknown; e: unknown }, length: number): boolean =>
  Number.isInteger(s) &&
  Number.isInteger(e) &&
  (s as number) >= 0 &&
  (e as number) >= (s as number) &&
  (e as number) < length;
