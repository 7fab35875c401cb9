import {
  chatPerson,
  type ChatModerationDraft,
  type ChatPerson,
  type ChatTreatmentDraft,
  PLAIN_MODERATION,
  USER_TREATMENTS,
} from '../../domain/chat/chat-messages';
import { until } from '../runtime/parse/times';
import { idText, member } from '../runtime/webhook/webhook';
import { sharedChat } from './chat';
import { isObject, type Members, type Notification } from './frame';
import { personAt, textAt } from './people';

interface Act {
  action: string;
  target: ChatPerson | null;
  moderator: ChatPerson | null;
}

const act = (event: Members, channel_id: string, { action, target, moderator }: Act): ChatModerationDraft => ({
  ...PLAIN_MODERATION,
  platform: 'twitch',
  channel_id,
  shared_chat: sharedChat(event),
  action,
  target,
  moderator,
});

/** `channel.ban`: for ever, or until `ends_at`. */
export function ban({ event, timestamp }: Notification, channel_id: string): ChatModerationDraft {
  const end = event['is_permanent'] === true ? null : event['ends_at'];
  const timeout = until(end, event['banned_at'], timestamp);
  return {
    ...act(event, channel_id, {
      action: timeout.ends_at === null ? 'ban' : 'timeout',
      target: personAt(event, 'user'),
      moderator: personAt(event, 'moderator_user'),
    }),
    reason: textAt(event, 'reason'),
    ...timeout,
  };
}

/** `channel.unban`. */
export const unban = ({ event }: Notification, channel_id: string): ChatModerationDraft =>
  act(event, channel_id, {
    action: 'unban',
    target: personAt(event, 'user'),
    moderator: personAt(event, 'moderator_user'),
  });

/** `channel.chat.message_delete`; only `channel.moderate` names the moderator. */
export const messageDelete = ({ event }: Notification, channel_id: string): ChatModerationDraft => ({
  ...act(event, channel_id, { action: 'delete', target: personAt(event, 'target_user'), moderator: null }),
  message_id: idText(event['message_id']),
});

/** `channel.moderate`; details are in the member named like the act, or like its object. */
export function moderate({ event, timestamp }: Notification, channel_id: string, action: string): ChatModerationDraft {
  const detail = detailOf(event, action);
  return {
    ...act(event, channel_id, {
      action,
      target: personAt(detail, 'user'),
      moderator: personAt(event, 'moderator_user'),
    }),
    message_id: idText(detail['message_id']),
    text: textAt(detail, 'message_body') ?? termsOf(detail),
    reason: textAt(detail, 'reason') ?? textAt(detail, 'moderator_message'),
    ...until(detail['expires_at'], null, timestamp),
  };
}

function detailOf(event: Members, action: string): Members {
  const names = [action, ...(action.endsWith('_unban_request') ? ['unban_request'] : []), 'automod_terms'];
  for (const name of names) {
    const detail = member(event, name);
    if (isObject(detail)) return detail;
  }
  return {};
}

const termsOf = (detail: Members): string | null =>
  Array.isArray(detail['terms']) ? detail['terms'].filter((term) => typeof term === 'string').join(', ') || null : null;

/** Observed words of Twitch for the three treatments. */
const TREATMENTS: ReadonlyMap<unknown, ChatTreatmentDraft['user_treatment']> = new Map([
  ...USER_TREATMENTS.map((treatment) => [treatment, treatment] as const),
  ['monitored', 'active_monitoring'],
  ['no_treatment', 'none'],
]);

/** `channel.suspicious_user.update` and `.message`; null for an unknown treatment. */
export function treatment({ event }: Notification, channel_id: string): ChatTreatmentDraft | null {
  const user_treatment = TREATMENTS.get(event['low_trust_status']);
  if (user_treatment === undefined) return null;
  return {
    kind: 'treatment',
    platform: 'twitch',
    channel_id,
    shared_chat: null,
    user: personAt(event, 'user') ?? chatPerson(null),
    moderator: personAt(event, 'moderator_user'),
    user_treatment,
  };
}
