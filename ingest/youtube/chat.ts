import {
  type ChatDraft,
  type ChatMessage,
  type ChatPerson,
  CHAT_ROLES,
  chatPerson,
  minorOfMicros,
  PLAIN_MESSAGE,
  PLAIN_MODERATION,
} from '../../domain/chat/chat-messages';
import { textParts } from '../../domain/chat/chat-text';
import { TOPICS } from '../../domain/common/records';
import type { LinkedConnection, Received } from '../runtime/connection/adapter';
import { chatRecord, ownerOf, people, readReceived } from '../runtime/parse/chat-record';
import { eventTime } from '../runtime/parse/times';
import { readSeconds } from '../../lib/time/vendor-times';
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

type Item = unknown;
const at = (item: Item, ...path: string[]) => member(item, 'snippet', ...path);

/** Records of an item of YouTube's live chat: an event, a chat record, or both. Source: vendors.md §3. */
interface Reading {
  /** Suffix of `youtube:`. */
  event?: string;
  chat?: ChatDraft;
  /** Persons in it besides its author. */
  others?: readonly unknown[];
  /** Distinguishes the states of one item, which has one id in all of them. */
  state?: string | null;
}

/** Documented kinds that are not stored. */
const NOT_KEPT: ReadonlySet<string> = new Set([
  'chatEndedEvent',
  'fanFundingEvent',
  'giftEvent',
  'sponsorOnlyModeEndedEvent',
  'sponsorOnlyModeStartedEvent',
  'tombstone',
]);

/** Converts an item of a chat's page or stream. */
export function normaliseYoutubeChat(received: Received, connection: LinkedConnection): Outcome {
  return readReceived(received, (item, raw) => outcomeOf(item, raw, received.received_at, connection));
}

function outcomeOf(item: unknown, raw: string, received_at: number, connection: LinkedConnection): Outcome {
  const { channel_id } = connection;
  const type = textOf(at(item, 'type'));
  const id = idText(member(item, 'id'));
  if (type === null || id === null) return park('bad_payload', 'id or snippet.type is missing');
  const reading = read(type, item, channel_id);
  if (reading === null) return unmapped(type, NOT_KEPT.has(type));
  const rest = {
    owner: ownerOf('youtube', connection),
    external_id: reading.state ? externalId('youtube', id, reading.state) : externalId('youtube', id),
    occurred_at: eventTime(received_at, at(item, 'publishedAt')),
  };
  const records: DraftRecord[] = [];
  if (reading.event !== undefined) {
    records.push({
      ...rest,
      topic: TOPICS.platform_events,
      type: `youtube:${reading.event}`,
      platform: 'youtube',
      ...people('youtube', [authorOf(item)?.id, ...(reading.others ?? [])]),
      raw,
    });
  }
  if (reading.chat !== undefined) records.push(chatRecord(reading.chat, raw, rest));
  return ok(...records);
}

function read(type: string, item: Item, channel_id: string): Reading | null {
  const details = (name: string, ...path: string[]) => at(item, `${name}Details`, ...path);
  const said = (message_type: string, text: unknown, paid: ChatMessage['paid'] = null): ChatDraft =>
    messageOf(item, channel_id, message_type, textOf(text) ?? '', paid);
  const act = { ...PLAIN_MODERATION, platform: 'youtube', channel_id } as const;
  switch (type) {
    case 'textMessageEvent':
      return { chat: said('text', details('textMessage', 'messageText') ?? at(item, 'displayMessage')) };
    case 'superChatEvent':
      return {
        event: 'superchat',
        chat: said('superchat', details('superChat', 'userComment'), paidOf('superchat', details('superChat'))),
      };
    case 'superStickerEvent': {
      const sticker = details('superSticker');
      const alt = member(sticker, 'superStickerMetadata', 'altText');
      return { event: 'supersticker', chat: said('supersticker', alt, paidOf('supersticker', sticker)) };
    }
    case 'newSponsorEvent':
      return { event: 'member' };
    case 'memberMilestoneChatEvent': {
      const comment = textOf(details('memberMilestoneChat', 'userComment'));
      return comment === null ? { event: 'member' } : { event: 'member', chat: said('member_milestone', comment) };
    }
    case 'membershipGiftingEvent':
      return { event: 'gift_membership' };
    case 'giftMembershipReceivedEvent':
      return { event: 'gift_membership_received', others: [details('giftMembershipReceived', 'gifterChannelId')] };
    case 'pollEvent':
      return { event: 'poll', state: pollState(details('poll')) };
    case 'messageDeletedEvent': {
      const message_id = idText(details('messageDeleted', 'deletedMessageId'));
      return { chat: { ...act, action: 'delete', moderator: authorOf(item), message_id } };
    }
    case 'messageRetractedEvent': {
      const [author, message_id] = [authorOf(item), idText(details('messageRetracted', 'retractedMessageId'))];
      return { chat: { ...act, action: 'delete', target: author, moderator: author, message_id } };
    }
    case 'userBannedEvent':
      return { chat: { ...act, moderator: authorOf(item), ...banOf(details('userBanned')) } };
    default:
      return null;
  }
}

/** Status of a poll, and its votes by option: YouTube repeats a poll under one id while votes arrive. */
function pollState(poll: unknown): string | null {
  const status = textOf(member(poll, 'metadata', 'status') ?? member(poll, 'status'));
  const options = member(poll, 'metadata', 'options');
  const tallies = Array.isArray(options) ? options.map((option) => idText(member(option, 'tally')) ?? '') : [];
  return tallies.some((tally) => tally !== '') ? `${status ?? ''}:${tallies.join('-')}` : status;
}

function authorOf(item: Item): ChatPerson | null {
  const id = idText(member(item, 'authorDetails', 'channelId')) ?? idText(at(item, 'authorChannelId'));
  const of = (name: string) => textOf(member(item, 'authorDetails', name));
  return id === null ? null : chatPerson(id, of('displayName'), of('displayName'), of('profileImageUrl'));
}

const ROLES: readonly (readonly [flag: string, role: (typeof CHAT_ROLES)[number]])[] = [
  ['isChatOwner', 'broadcaster'],
  ['isChatModerator', 'moderator'],
  ['isChatSponsor', 'subscriber'],
  ['isVerified', 'verified'],
];

function messageOf(
  item: Item,
  channel_id: string,
  message_type: string,
  text: string,
  paid: ChatMessage['paid'],
): ChatDraft {
  const roles = ROLES.filter(([flag]) => member(item, 'authorDetails', flag) === true).map(([, role]) => role);
  return {
    ...PLAIN_MESSAGE,
    platform: 'youtube',
    channel_id,
    message_id: idText(member(item, 'id')),
    live_chat_id: textOf(at(item, 'liveChatId')),
    author: authorOf(item),
    badges: roles.map((kind) => ({ kind, id: null, info: null, image_url: null })),
    roles,
    message_type,
    text,
    parts: textParts(text),
    paid,
  };
}

/** Amounts are texts of whole millionths; some senders write numbers. */
function paidOf(kind: 'superchat' | 'supersticker', details: unknown): ChatMessage['paid'] {
  const currency = textOf(member(details, 'currency')) ?? '';
  const tier = numberOf(member(details, 'tier'));
  return {
    kind,
    amount_minor: minorOfMicros(idText(member(details, 'amountMicros')) ?? 0, currency),
    currency,
    display: textOf(member(details, 'amountDisplayString')),
    tier: Number.isSafeInteger(tier) ? tier : null,
    sticker_id: idText(member(details, 'superStickerMetadata', 'stickerId')),
  };
}

function banOf(details: unknown) {
  const of = (name: string) => textOf(member(details, 'bannedUserDetails', name));
  const id = idText(member(details, 'bannedUserDetails', 'channelId'));
  const temporary = textOf(member(details, 'banType'))?.toLowerCase() === 'temporary';
  return {
    action: temporary ? 'timeout' : 'ban',
    target: id === null ? null : chatPerson(id, of('displayName'), of('displayName'), of('profileImageUrl')),
    duration_secs: temporary ? readSeconds(member(details, 'banDurationSeconds')) : null,
  };
}
