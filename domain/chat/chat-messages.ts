import { z } from 'zod';
import { DataError } from '../../kernel/projection';
import type { RecordEnvelope } from '../common/records';
import { PLATFORMS } from '../common/vendors';

/**
 * Records of a chat, in one form for all platforms: the `raw` of a record on `chat-events`, version 1. Members are only
 * ever added. Sources: spec doc2 §2.10, doc3 §6.4, extra facts §11 and §12.
 */
export const CHAT_RECORD_VERSION = 1;

/** Where emotes come from. */
export const EMOTE_PROVIDERS = ['twitch', '7tv', 'ffz', 'bttv', 'discord', 'youtube', 'kick', 'trovo'] as const;

/** Somebody on the platform. `id` is the platform's own; a name that it did not tell is null. */
const Person = z.object({
  id: z.string().nullable(),
  /** The login or handle. */
  username: z.string().nullable(),
  display_name: z.string().nullable(),
  avatar_url: z.string().nullable(),
});
export type ChatPerson = z.output<typeof Person>;

/** A piece of a message; the `text` of all, joined, is the message. */
const Part = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({
    type: z.literal('emote'),
    text: z.string(),
    id: z.string(),
    provider: z.enum(EMOTE_PROVIDERS),
    /** Null where the platform has no address for it. */
    url: z.string().nullable(),
    animated: z.boolean(),
  }),
  z.object({
    type: z.literal('gif'),
    text: z.string(),
    id: z.string(),
    provider: z.string(),
    url: z.string().nullable(),
  }),
  z.object({
    type: z.literal('mention'),
    text: z.string(),
    user_id: z.string().nullable(),
    username: z.string().nullable(),
  }),
  z.object({ type: z.literal('link'), text: z.string(), url: z.string() }),
  z.object({
    type: z.literal('cheermote'),
    text: z.string(),
    prefix: z.string(),
    bits: z.int(),
    tier: z.int(),
  }),
]);
export type ChatPart = z.output<typeof Part>;

const Badge = z.object({
  /** The platform's own word: `subscriber`, `moderator`, `sub_gifter`. */
  kind: z.string(),
  /** Which of its kind: a version, a count of months; null where the platform has no such thing. */
  id: z.string().nullable(),
  /** Detail of the badge from the platform, such as the months of a subscription. */
  info: z.string().nullable(),
  image_url: z.string().nullable(),
});
export type ChatBadge = z.output<typeof Badge>;

export const CHAT_ROLES = ['broadcaster', 'moderator', 'vip', 'subscriber', 'founder', 'artist', 'verified'] as const;

const Reply = z.object({
  message_id: z.string(),
  /** The message replied to, as far as the platform quotes it. */
  text: z.string().nullable(),
  author: Person.nullable(),
  /** The first message of the thread. */
  thread_message_id: z.string().nullable(),
});

/** Another channel's room, whose chat is shared with this one. */
const SharedChat = z.object({
  channel: Person,
  message_id: z.string().nullable(),
  badges: z.array(Badge),
});

/** Amount paid with a message. */
const Paid = z.object({
  kind: z.enum(['bits', 'superchat', 'supersticker', 'spell', 'kicks']),
  /** Whole minor units: cents of USD, yen of JPY; of bits and other platform coins the coins. */
  amount_minor: z.int(),
  /** ISO 4217, or the coin: `BITS`, `MANA`, `ELIXIR`, `KICKS`. */
  currency: z.string(),
  /** As the platform shows it. */
  display: z.string().nullable(),
  tier: z.int().nullable(),
  sticker_id: z.string().nullable(),
});

const base = {
  version: z.literal(CHAT_RECORD_VERSION),
  platform: z.enum(PLATFORMS),
  /** The platform's own id of the channel in whose room it happened. */
  channel_id: z.string(),
  shared_chat: SharedChat.nullable(),
  /** The vendor's payload, digit for digit; see {@link chatRecordText}. */
  raw: z.unknown(),
};

const Message = z.object({
  ...base,
  kind: z.literal('message'),
  message_id: z.string().nullable(),
  /** YouTube's id of the live chat. */
  live_chat_id: z.string().nullable(),
  /** Null when anonymous. */
  author: Person.nullable(),
  /** `#RRGGBB`. */
  color: z.string().nullable(),
  badges: z.array(Badge),
  roles: z.array(z.enum(CHAT_ROLES)),
  /** `text`, or the platform's word for another kind: `user_intro`, `announcement`, `superchat`, `watch_streak`. */
  message_type: z.string(),
  text: z.string(),
  /** Text that the platform adds: "viewer23 has been a moderator for 48 months!" */
  system_text: z.string().nullable().default(null),
  parts: z.array(Part),
  /** Said as an act (`/me`). */
  action: z.boolean(),
  reply: Reply.nullable(),
  paid: Paid.nullable(),
  /** The reward of channel points that it was sent with. */
  reward_id: z.string().nullable(),
});
export type ChatMessage = z.output<typeof Message>;

const Moderation = z.object({
  ...base,
  kind: z.literal('moderation'),
  /** The platform's own word: `ban`, `timeout`, `untimeout`, `delete`, `clear`, `warn`, `slow`. */
  action: z.string(),
  target: Person.nullable(),
  /** Null when the platform does not name one. */
  moderator: Person.nullable(),
  /** The message that was deleted. */
  message_id: z.string().nullable(),
  text: z.string().nullable(),
  reason: z.string().nullable(),
  /** Whole seconds; null when for ever, or no matter of time. */
  duration_secs: z.int().nullable(),
  /** RFC 3339 UTC. */
  ends_at: z.string().nullable(),
  /** The platform's id of a ban that was made here, by which it is taken back. */
  ban_id: z.string().nullable().default(null),
});
export type ChatModeration = z.output<typeof Moderation>;

export const USER_TREATMENTS = ['active_monitoring', 'restricted', 'none'] as const;

const Treatment = z.object({
  ...base,
  kind: z.literal('treatment'),
  user: Person,
  moderator: Person.nullable(),
  user_treatment: z.enum(USER_TREATMENTS),
});
export type ChatTreatment = z.output<typeof Treatment>;

/** The `raw` of a record on `chat-events`. */
export const ChatRecord = z.discriminatedUnion('kind', [Message, Moderation, Treatment]);
export type ChatRecord = z.output<typeof ChatRecord>;

/** Records without the vendor's payload, which stays text. */
export type ChatMessageDraft = Omit<z.input<typeof Message>, 'version' | 'raw'>;
export type ChatModerationDraft = Omit<z.input<typeof Moderation>, 'version' | 'raw'>;
export type ChatTreatmentDraft = Omit<ChatTreatment, 'version' | 'raw'>;
export type ChatDraft = ChatMessageDraft | ChatModerationDraft | ChatTreatmentDraft;

/** Defaults of a message's members besides its text, for platforms without them. */
export const PLAIN_MESSAGE = {
  kind: 'message',
  shared_chat: null,
  live_chat_id: null,
  color: null,
  action: false,
  reply: null,
  paid: null,
  reward_id: null,
} as const satisfies Partial<ChatMessageDraft>;

/** Defaults of a moderator's act. */
export const PLAIN_MODERATION = {
  kind: 'moderation',
  shared_chat: null,
  target: null,
  moderator: null,
  message_id: null,
  text: null,
  reason: null,
  duration_secs: null,
  ends_at: null,
} as const satisfies Partial<ChatModerationDraft>;

/** `type` of the envelope: `twitch:chat`, `twitch:moderation`, `twitch:treatment`. */
export function chatRecordType({ platform, kind }: Pick<ChatRecord, 'platform' | 'kind'>): string {
  return `${platform}:${kind === 'message' ? 'chat' : kind}`;
}

/** `raw` of the envelope; `raw` is the vendor's payload as JSON text and keeps every digit. */
export function chatRecordText(draft: ChatDraft, raw: string): string {
  return `{"version":${CHAT_RECORD_VERSION},${JSON.stringify(draft).slice(1, -1)},"raw":${raw}}`;
}

/**
 * Content of a record on `chat-events`; null for a record older than version 1, whose payload is the vendor's own, and
 * for one whose persons were erased.
 * @throws DataError when it is of version 1 and not as declared, or of a version to come
 */
export function readChatRecord({ raw }: Pick<RecordEnvelope, 'raw'>): ChatRecord | null {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch (error) {
    throw new DataError(`no JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const version = typeof value === 'object' && value !== null ? (value as { version?: unknown }).version : undefined;
  if (typeof version !== 'number') return null;
  if (version > CHAT_RECORD_VERSION) throw new DataError(`a chat record of version ${version} is for a newer build`);
  const read = ChatRecord.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new DataError(`${issue!.path.join('.')}: ${issue!.message}`);
}

/** Platform ids of everybody whom a record names, the one it is about first; each once. */
export function personsOf(draft: ChatDraft): string[] {
  const named = new Set<string>();
  for (const id of personsIn(draft)) if (id !== null && id !== undefined && id !== '') named.add(id);
  return [...named];
}

function personsIn(draft: ChatDraft): (string | null | undefined)[] {
  switch (draft.kind) {
    case 'message': {
      const mentioned = draft.parts.map((part) => (part.type === 'mention' ? part.user_id : null));
      return [draft.author?.id, draft.reply?.author?.id, ...mentioned, draft.shared_chat?.channel.id];
    }
    case 'moderation':
      return [draft.target?.id, draft.moderator?.id, draft.shared_chat?.channel.id];
    case 'treatment':
      return [draft.user.id, draft.moderator?.id];
  }
}

/** The WebSocket channel of an account's chats. */
export const chatChannel = (account_id: string): string => `chat:${account_id}`;

/** An amount in millionths, as Google writes money, in whole minor units, rounded to the nearest; 0 where none. */
export function minorOfMicros(micros: string | number, currency: string): number {
  const digits = minorDigits(currency);
  const amount = Math.round(Number(micros) / 10 ** (6 - digits));
  return Number.isSafeInteger(amount) ? amount : 0;
}

/** Digits of minor units by ISO 4217, where they are not two. The runtime's own table has others, and changes. */
const MINOR_DIGITS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    0: 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF',
    3: 'BHD IQD JOD KWD LYD OMR TND',
    4: 'CLF UYW',
  }).flatMap(([digits, currencies]) => currencies.split(' ').map((currency) => [currency, Number(digits)] as const)),
);

/** How many digits the minor unit of a currency has: 2 for USD, 0 for JPY; 2 for what is no currency. */
export const minorDigits = (currency: string): number => MINOR_DIGITS.get(currency.toUpperCase()) ?? 2;

/** A person of whom the id and perhaps names are known. */
export const chatPerson = (
  id: string | null,
  username: string | null = null,
  display_name: string | null = username,
  avatar_url: string | null = null,
): ChatPerson => ({ id, username, display_name, avatar_url });
