import type { Json } from '../../lib/json/json';
import { memberAt, parsedJson } from '../../lib/json/paths';
import { ERASED_RAW } from '../common/records';
import { cut } from './names';

/** An event as pages draw it: these members alone, never the vendor's payload. */
export interface DrawnEvent {
  /** Null of a test event, which is not in the log. */
  id: string | null;
  type: string;
  platform: string;
  user_name: string | null;
  amount: number | null;
  currency: string | null;
  months: number | null;
  count: number | null;
  tier: string | null;
  message: string | null;
  title: string | null;
  created_at: string;
}

const ERASED = JSON.parse(ERASED_RAW) as string;
const MAX_TEXT = 500;
const paths = (...all: string[]): readonly (readonly string[])[] => all.map((path) => path.split('.'));

/** Places of members in payloads of all vendors; the first that is there counts. */
const USER_NAME = paths(
  ...['nick_name', 'user_name', 'username', 'userName', 'display_name', 'displayName', 'chatter_user_name'],
  ...['chatter_user_login', 'from_broadcaster_user_name', 'raid.user_name', 'follower.username'],
  ...['subscriber.username', 'gifter.username', 'sender.username', 'redeemer.username', 'authorDetails.displayName'],
  ...['donation.user.username', 'data.displayName', 'data.username', 'user.username', 'event.user_name', 'name'],
);
const AMOUNT = paths(
  ...['bits', 'cheer.bits', 'donation.amount', 'data.amount', 'gift.amount', 'total_price', 'amount.value', 'amount'],
);
const MICROS = paths('snippet.superChatDetails.amountMicros', 'snippet.superStickerDetails.amountMicros');
const CURRENCY = paths(
  ...['donation.currency', 'data.currency', 'currency', 'amount.currency', 'amount.currency_code'],
  ...['snippet.superChatDetails.currency', 'snippet.superStickerDetails.currency'],
);
const MONTHS = paths(
  ...['cumulative_months', 'resub.cumulative_months', 'sub.duration_months', 'months', 'duration'],
  'snippet.memberMilestoneChatDetails.memberMonth',
);
const COUNT = paths(
  ...['viewers', 'viewer_count', 'raid.viewer_count', 'community_sub_gift.total', 'total'],
  ...['snippet.membershipGiftingDetails.giftMembershipsCount', 'count'],
);
const TIER = paths(
  ...['tier', 'sub.sub_tier', 'resub.sub_tier', 'sub_gift.sub_tier', 'community_sub_gift.sub_tier', 'sub_level'],
  'snippet.newSponsorDetails.memberLevelName',
);
const MESSAGE = paths(
  ...['message.text', 'donation.message', 'data.message', 'gift.message', 'user_input', 'message'],
  ...['snippet.superChatDetails.userComment', 'snippet.memberMilestoneChatDetails.userComment'],
);
const TITLE = paths('reward.title', 'reward_title', 'title', 'gift.name', 'gift');

function textAt(payload: Json, places: typeof TIER): string | null {
  for (const path of places) {
    const found = memberAt(payload, path);
    if (typeof found === 'string' && found !== '') return cut(found, MAX_TEXT);
  }
  return null;
}

function numberAt(payload: Json, places: typeof TIER): number | null {
  for (const path of places) {
    const found = memberAt(payload, path);
    const number = typeof found === 'string' && found !== '' ? Number(found) : found;
    if (typeof number === 'number' && Number.isFinite(number)) return number;
  }
  return null;
}

interface ShownEvent {
  id?: string | undefined;
  type: string;
  platform: string;
  payload: Json;
  created_at: string;
}

/**
 * An event of an account's channel for drawing; null of one that no page draws: a recipient's own event of a gift of
 * many, what happened in another room of a shared chat, and one whose content was erased.
 */
export function drawnEvent({ id, type, platform, payload, created_at }: ShownEvent): DrawnEvent | null {
  if (payload === ERASED) return null;
  if (typeof memberAt(payload, ['sub_gift', 'community_gift_id']) === 'string') return null;
  const notice = memberAt(payload, ['notice_type']);
  if (typeof notice === 'string' && notice.startsWith('shared_chat_')) return null;
  const micros = numberAt(payload, MICROS);
  const bits = numberAt(payload, paths('bits', 'cheer.bits'));
  return {
    id: id ?? null,
    type,
    platform,
    user_name: textAt(payload, USER_NAME),
    amount: micros === null ? numberAt(payload, AMOUNT) : micros / 1_000_000,
    currency: bits === null ? textAt(payload, CURRENCY) : 'bits',
    months: numberAt(payload, MONTHS),
    count: giftsIn(payload) ?? numberAt(payload, COUNT),
    tier: textAt(payload, TIER),
    message: textAt(payload, MESSAGE),
    title: textAt(payload, TITLE),
    created_at,
    ...(platform === 'trovo' && drawnContent(payload)),
    // The name of an order is its number; buyers are not named on a stream.
    ...(platform === 'shopify' && { user_name: null, title: textAt(payload, paths('title', 'name')) }),
  };
}

/** Number of subscriptions given to people whom the payload names. */
function giftsIn(payload: Json): number | null {
  const giftees = memberAt(payload, ['giftees']);
  if (Array.isArray(giftees)) return giftees.length;
  const { sub_gift = null } = (payload ?? {}) as { sub_gift?: Json };
  return sub_gift === null ? null : 1;
}

/** Types of Trovo's messages about subscriptions. */
const TROVO = { random_gifts: 5005, gift: 5006 } as const;

/** Members of an event in the `content` of Trovo's message: a text, a number, or JSON. */
function drawnContent(payload: Json): Partial<DrawnEvent> {
  const content = memberAt(payload, ['content']);
  const type = numberAt(payload, paths('type'));
  if (typeof content !== 'string') return {};
  if (type === TROVO.random_gifts) return { count: numberAt(payload, paths('content')) };
  if (type === TROVO.gift) return { count: 1 };
  const parsed = content.startsWith('{') ? parsedJson(content) : null;
  if (parsed === null) return { tier: /^tier/i.test(content) ? cut(content, MAX_TEXT) : null };
  const count = numberAt(parsed, paths('num', 'raiderNum'));
  const each = numberAt(parsed, paths('gift_value'));
  return {
    title: textAt(parsed, paths('gift')),
    count,
    amount: each === null ? null : each * (count ?? 1),
    currency: textAt(parsed, paths('value_type')),
  };
}

/** Members of a message of a chat that pages draw. */
const CHAT_MEMBERS = [
  ...['id', 'platform', 'platform_message_id', 'platform_user_id', 'username', 'display_name', 'avatar_url'],
  ...['message', 'emotes', 'badges', 'reply_to_username', 'color', 'created_at'],
];
const CLEARED_MEMBERS: Readonly<Record<string, readonly string[]>> = {
  'chat:delete': ['type', 'platform_message_id'],
  'chat:clear_user': ['type', 'platform', 'platform_user_id', 'action'],
};

/** A message of `chat:<account_id>` for drawing, with its event type; null of one that no page draws. */
export function drawnChat(data: Readonly<Record<string, unknown>>): { event_type: string; data: object } | null {
  const { type } = data;
  if (type === undefined && typeof data.message === 'string')
    return { event_type: 'chat:message', data: only(data, CHAT_MEMBERS) };
  const members = typeof type === 'string' && Object.hasOwn(CLEARED_MEMBERS, type) ? CLEARED_MEMBERS[type]! : null;
  return members === null ? null : { event_type: type as string, data: only(data, members) };
}

/** Song that is played, as pages draw it. */
export interface DrawnSong {
  is_playing: boolean;
  progress_ms: number | null;
  title: string | null;
  artist: string | null;
  cover_url: string | null;
  duration_ms: number | null;
}

/** The state of a player for drawing. */
export function drawnSong(playing: Json): DrawnSong {
  const item = memberAt(playing, ['item']) ?? null;
  const artists = memberAt(item, ['artists']);
  const names = Array.isArray(artists) ? artists.flatMap((one) => textAt(one, paths('name')) ?? []) : [];
  const images = memberAt(item, ['album', 'images']);
  return {
    is_playing: memberAt(playing, ['is_playing']) === true,
    progress_ms: numberAt(playing, paths('progress_ms')),
    title: textAt(item, paths('name')),
    artist: names.length === 0 ? null : cut(names.join(', '), MAX_TEXT),
    cover_url: Array.isArray(images) && images.length > 0 ? textAt(images.at(-1)!, paths('url')) : null,
    duration_ms: numberAt(item, paths('duration_ms')),
  };
}

/** Members in which filtered words are masked. */
const MASKED: ReadonlySet<string> = new Set([
  ...['message', 'username', 'display_name', 'reply_to_username', 'user_name', 'title', 'artist'],
]);

/** The message of a page with its texts masked. */
export const maskDrawn = <Drawn extends object>(drawn: Drawn, mask: (text: string) => string): Drawn =>
  Object.fromEntries(
    Object.entries(drawn).map(([name, value]) => [
      name,
      typeof value === 'string' && MASKED.has(name) ? mask(value) : (value as unknown),
    ]),
  ) as Drawn;

const only = (all: Readonly<Record<string, unknown>>, members: readonly string[]): object =>
  Object.fromEntries(members.flatMap((name) => (all[name] === undefined ? [] : [[name, all[name]]])));

/** Types of events that are follows, and tips, whose newest names the labels of a page have. */
export const FOLLOWER_TYPES = ['twitch:follower', 'kick:follower', 'trovo:follower'] as const;
export const TIP_TYPES = ['streamelements:tip'] as const;
