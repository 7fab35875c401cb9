import { createHash } from 'node:crypto';
import {
  type ChatBadge,
  type ChatDraft,
  type ChatMessage,
  type ChatPart,
  type ChatPerson,
  CHAT_ROLES,
  chatPerson,
  PLAIN_MESSAGE,
} from '../../domain/chat/chat-messages';
import { textParts } from '../../domain/chat/chat-text';
import { TOPICS } from '../../domain/common/records';
import type { LinkedConnection, Received } from '../runtime/connection/adapter';
import { chatRecord, ownerOf, people, readReceived } from '../runtime/parse/chat-record';
import { eventTime } from '../runtime/parse/times';
import { readJson } from '../runtime/parse/text';
import {
  type DraftRecord,
  externalId,
  idText,
  member,
  numberOf,
  ok,
  type Outcome,
  park,
  textOf,
  unmapped,
} from '../runtime/webhook/webhook';

/** Kinds of items that are stored as events, as the suffix of `trovo:`. Source: vendors.md §5. */
const EVENTS: ReadonlyMap<number, string> = new Map([
  [5, 'spell'],
  [5001, 'subscribe'],
  [5003, 'follower'],
  [5005, 'subscribe'],
  [5006, 'subscribe'],
  [5008, 'raid'],
  [5009, 'spell'],
]);
/** The system's own items, joins, activities, stream on or off, unfollows. */
const NOT_KEPT: ReadonlySet<number> = new Set([5002, 5004, 5007, 5012, 5013]);
/** Kinds of items that are chat, with the record's `message_type`. */
const CHATS: ReadonlyMap<number, string> = new Map([
  [0, 'text'],
  [5, 'spell'],
  [6, 'super_cap'],
  [7, 'colorful'],
  [8, 'spell'],
  [9, 'bullet'],
  [5009, 'spell'],
]);
const AVATARS = 'https://headicon.trovo.live/user/';

const textsAt = (value: unknown): string[] =>
  (Array.isArray(value) ? value : []).filter((one) => typeof one === 'string');

/** Converts an item of a CHAT frame. */
export function normaliseTrovoChat(received: Received, connection: LinkedConnection): Outcome {
  return readReceived(received, (item, raw) => outcomeOf(item, raw, received.received_at, connection));
}

function outcomeOf(item: unknown, raw: string, received_at: number, connection: LinkedConnection): Outcome {
  const { channel_id } = connection;
  const type = member(item, 'type');
  if (typeof type !== 'number') return park('bad_payload', 'type is missing');
  const [event, chat] = [EVENTS.get(type), CHATS.get(type)];
  if (event === undefined && chat === undefined) return unmapped(String(type), NOT_KEPT.has(type));
  const author = authorOf(item);
  const rest = {
    owner: ownerOf('trovo', connection),
    external_id: idOf(item, raw),
    occurred_at: eventTime(received_at, member(item, 'send_time')),
  };
  const records: DraftRecord[] = [];
  if (event !== undefined) {
    records.push({
      ...rest,
      topic: TOPICS.platform_events,
      type: `trovo:${event}`,
      platform: 'trovo',
      ...people('trovo', [author?.id]),
      raw,
    });
  }
  if (chat !== undefined) records.push(chatRecord(messageOf(item, channel_id, chat, author), raw, rest));
  return ok(...records);
}

/**
 * Id of an item. Today every item has one; without an id, content and second identify it, and without a time it always
 * counts.
 */
function idOf(item: unknown, raw: string): string | null {
  const id = idText(member(item, 'message_id'));
  if (id !== null) return externalId('trovo', id);
  if (idText(member(item, 'send_time')) === null) return null;
  return externalId('trovo', 'content', createHash('sha256').update(raw).digest('hex').slice(0, 40));
}

function authorOf(item: unknown): ChatPerson | null {
  const id = idText(member(item, 'sender_id')) ?? idText(member(item, 'uid'));
  if (id === null || id === '0') return null;
  const [user_name, nick_name] = [textOf(member(item, 'user_name')), textOf(member(item, 'nick_name'))];
  const avatar = textOf(member(item, 'avatar'));
  const avatar_url = avatar === null || /^https?:/.test(avatar) ? avatar : `${AVATARS}${encodeURI(avatar)}`;
  return chatPerson(id, user_name ?? nick_name, nick_name ?? user_name, avatar_url);
}

function messageOf(item: unknown, channel_id: string, message_type: string, author: ChatPerson | null): ChatDraft {
  const content = textOf(member(item, 'content')) ?? '';
  const described = spellOf(content);
  const spell = described ?? spellIn(member(item, 'content_data'));
  const text = described?.gift ?? content;
  const medals = textsAt(member(item, 'medals'));
  return {
    ...PLAIN_MESSAGE,
    platform: 'trovo',
    channel_id,
    message_id: idText(member(item, 'message_id')),
    author,
    badges: medals.map((kind): ChatBadge => ({ kind, id: null, info: null, image_url: null })),
    roles: rolesOf([...textsAt(member(item, 'roles')), ...medals], author?.id === channel_id),
    message_type,
    text,
    parts: partsOf(text),
    paid: spell === null ? null : paidOf(spell),
  };
}

interface Spell {
  gift: string;
  count: number;
  value: number;
  currency: string;
}

/** The spell that a content describes; null for a text. */
function spellOf(content: string): Spell | null {
  if (!content.startsWith('{')) return null;
  const read = readJson(content);
  return read.ok ? spellIn(read.value) : null;
}

/** Source: vendors.md §5, "spell content". */
function spellIn(value: unknown): Spell | null {
  const currency = textOf(member(value, 'value_type'));
  const worth = numberOf(member(value, 'gift_value'));
  const count = numberOf(member(value, 'num') ?? member(value, 'gift_num') ?? 1);
  const is_amount = currency !== null && worth > 0 && count > 0 && Number.isSafeInteger(worth * count);
  return is_amount ? { gift: textOf(member(value, 'gift')) ?? '', count, value: worth, currency } : null;
}

const paidOf = ({ gift, count, value, currency }: Spell): ChatMessage['paid'] => ({
  kind: 'spell',
  amount_minor: count * value,
  currency: currency.toUpperCase(),
  display: gift === '' ? null : `${gift} ×${count}`,
  tier: null,
  sticker_id: null,
});

const ROLE_WORDS: Readonly<Record<string, (typeof CHAT_ROLES)[number]>> = {
  streamer: 'broadcaster',
  creator: 'broadcaster',
  mod: 'moderator',
  moderator: 'moderator',
  supermod: 'moderator',
  vip: 'vip',
  subscriber: 'subscriber',
};

function rolesOf(words: readonly string[], is_streamer: boolean) {
  const has = new Set(words.map((word) => (word.startsWith('sub_') ? 'subscriber' : ROLE_WORDS[word.toLowerCase()])));
  if (is_streamer) has.add('broadcaster');
  return CHAT_ROLES.filter((role) => has.has(role));
}

/** Emotes are written `:name`, between blanks; a smiley of two characters does not match. */
const EMOTE = /(?<![^\s]):([a-z][\w]{2,60}!?)(?![^\s])/gi;

function partsOf(text: string): ChatPart[] {
  const parts: ChatPart[] = [];
  let from = 0;
  for (const found of text.matchAll(EMOTE)) {
    parts.push(...textParts(text.slice(from, found.index)));
    parts.push({ type: 'emote', text: found[0], id: found[1]!, provider: 'trovo', url: null, animated: false });
    from = found.index + found[0].length;
  }
  return [...parts, ...textParts(text.slice(from))];
}
