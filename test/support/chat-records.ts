import { v7 as uuid } from 'uuid';
import {
  type ChatDraft,
  type ChatMessageDraft,
  type ChatModerationDraft,
  chatPerson,
  chatRecordText,
  chatRecordType,
  PLAIN_MESSAGE,
  PLAIN_MODERATION,
} from '../../domain/chat/chat-messages';
import { textParts } from '../../domain/chat/chat-text';
import { TOPICS } from '../../domain/common/records';
import type { LoggedRecord } from '../../engines/records/port';

let offset = 0;

/** A key for each person, as the log of records gives it back. */
export const keyOf = (platform: string, id: string): string =>
  `00000000-0000-4000-8000-${Buffer.from(`${platform}:${id}`).toString('hex').padStart(24, '0').slice(-12)}`;

interface Told {
  account_id: string;
  /** RFC 3339 UTC; the receipt is the same without `received_at`. */
  at: string;
  received_at?: string;
}

/** A record of a chat as a projection gets it. */
export function chatRecord(draft: ChatDraft, { account_id, at, received_at = at }: Told): LoggedRecord {
  const about = draft.kind === 'message' ? draft.author : draft.kind === 'moderation' ? draft.target : draft.user;
  const id = uuid();
  return {
    id,
    account_id,
    type: chatRecordType(draft),
    platform: draft.platform,
    external_id: `${draft.platform}:${id}`,
    occurred_at: at,
    received_at,
    subject: about?.id ? `${draft.platform}:${about.id}` : null,
    ...(about?.id && { subject_key: keyOf(draft.platform, about.id) }),
    raw: chatRecordText(draft, '{}'),
    trace: null,
    topic: TOPICS.chat_events,
    partition: 0,
    offset: (offset += 1),
  };
}

/** A message by `author`; further members go over the usual ones. */
export const message = (author: string, text: string, more: Partial<ChatMessageDraft> = {}): ChatMessageDraft => ({
  ...PLAIN_MESSAGE,
  platform: 'twitch',
  channel_id: '900',
  message_id: uuid(),
  author: chatPerson(author, `login_${author}`, `Name ${author}`),
  badges: [],
  roles: [],
  message_type: 'text',
  text,
  parts: textParts(text),
  ...more,
});

/** An act about `target`. */
export const act = (
  action: string,
  target: string | null,
  more: Partial<ChatModerationDraft> = {},
): ChatModerationDraft => ({
  ...PLAIN_MODERATION,
  platform: 'twitch',
  channel_id: '900',
  action,
  target: target === null ? null : chatPerson(target, `login_${target}`),
  moderator: chatPerson('1', 'mod'),
  ...more,
});
