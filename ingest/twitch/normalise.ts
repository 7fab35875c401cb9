import type { ChatDraft } from '../../domain/chat/chat-messages';
import { TOPICS } from '../../domain/common/records';
import type { LinkedConnection, Received } from '../runtime/connection/adapter';
import { chatRecord, people } from '../runtime/parse/chat-record';
import { MAX_DEPTH } from '../../lib/json/depth';
import { eventTime } from '../runtime/parse/times';
import { readTime } from '../../lib/time/vendor-times';
import {
  type DraftRecord,
  externalId,
  idText,
  member,
  ok,
  type Outcome,
  park,
  skip,
  unmapped,
} from '../runtime/webhook/webhook';
import { chatMessage } from './chat';
import { eventId } from './event-ids';
import { MODERATED, NOTICES, NOTICES_TOLD_ELSEWHERE, NOTICES_WITH_TEXT, type Stored, STORED } from './events';
import { isObject, type Notification, readFrame } from './frame';
import { ban, messageDelete, moderate, treatment, unban } from './moderation';
import { personsIn } from './people';

/** Maximum age of a message, equal to Twitch's own guard against replays. */
export const OLDEST_MS = 10 * 60_000;

/** Types whose records carry the message time, which orders reports and looks. */
const STREAM = /^stream\.(?:online|offline)$/;
/** EventSub's own messages. */
const PROTOCOL = /^(?:session_(?:welcome|keepalive|reconnect)|revocation)$/;
/** Types that can be subscribed to: something of a channel, a stream, a user, an extension or a conduit. */
const DOCUMENTED = /^(?:automod|channel|conduit|drop|extension|stream|user)\.[a-z_.]+$/;

/** Converts a frame of an EventSub socket to records; other frames are skipped or parked. Spec doc3 §6.2, §6.4. */
export function normaliseTwitch(received: Received, { account_id, channel_id }: LinkedConnection): Outcome {
  if (account_id === null) return skip('no_account');
  const reading = readFrame(received);
  if (reading.kind === 'bad') return park(reading.reason, reading.detail);
  if (reading.kind === 'other') {
    const message_type = reading.message_type.slice(0, 100);
    return PROTOCOL.test(message_type) ? skip('not_a_notification', message_type) : park('unknown_type', message_type);
  }
  const { notification } = reading;
  const age_ms = received.age_ms ?? ageOf(notification, received.received_at);
  if (age_ms > OLDEST_MS) return skip('too_old');
  const persons = personsIn(notification.event, channel_id);
  if (persons === null) return park('too_deep', `nested deeper than ${MAX_DEPTH}`);
  return new Reader(notification, received.received_at, account_id, channel_id, persons).read();
}

/** Age by our clock; 0 without a send time. */
function ageOf({ timestamp }: Notification, received_at: number): number {
  const sent_at = readTime(timestamp);
  return sent_at === null ? 0 : received_at - sent_at;
}

/** Reads a notification for one channel. */
class Reader {
  constructor(
    private readonly notification: Notification,
    private readonly received_at: number,
    private readonly account_id: string,
    private readonly channel_id: string,
    /** All persons in the notification. */
    private readonly persons: ReadonlySet<string>,
  ) {}

  read(): Outcome {
    const { notification, channel_id } = this;
    const { type, event } = notification;
    const mapping = STORED.get(type);
    if (mapping !== undefined) {
      const stored = typeof mapping === 'function' ? mapping(event, channel_id) : mapping;
      return stored === null ? skip('other_channel', type) : ok(this.stored(stored));
    }
    switch (type) {
      case 'channel.chat.message':
        return this.message();
      case 'channel.chat.notification':
        return this.notice();
      case 'channel.chat.message_delete':
        return this.chat(messageDelete(notification, channel_id));
      case 'channel.ban':
        return this.chat(ban(notification, channel_id), event['banned_at']);
      case 'channel.unban':
        return this.chat(unban(notification, channel_id));
      case 'channel.moderate':
        return this.moderated();
      case 'channel.suspicious_user.update':
      case 'channel.suspicious_user.message': {
        const treated = treatment(notification, channel_id);
        return treated === null ? park('bad_payload', 'low_trust_status is not known') : this.chat(treated);
      }
      default:
        return unmapped(type, DOCUMENTED.test(type));
    }
  }

  /**
   * A message, with the event of its author's first one; a shared chat has no such event, because the author may be new
   * to another room.
   */
  private message(): Outcome {
    const { event } = this.notification;
    const draft = chatMessage(event, this.channel_id, idText(event['message_type']) ?? 'text');
    const said = this.chatRecord(draft);
    if (said.subject === null || draft.shared_chat !== null) return ok(said);
    return ok({ ...said, first_message: () => this.stored({ type: 'first_message', person: 'chatter_user_id' }) });
  }

  /** An event of ours, a message of the chat, or both: unknown kinds are kept as messages. */
  private notice(): Outcome {
    const { event } = this.notification;
    const notice = idText(event['notice_type']);
    if (notice === null) return park('bad_payload', 'notice_type is missing');
    if (NOTICES_TOLD_ELSEWHERE.has(notice)) return skip('told_elsewhere', notice);
    const type = NOTICES.get(notice);
    if (type === undefined) return this.chat(chatMessage(event, this.channel_id, notice));
    // An anonymous giver is no person, whatever account Twitch puts there.
    const person = event['chatter_is_anonymous'] === true ? undefined : 'chatter_user_id';
    const stored = this.stored({ type, person });
    if (!NOTICES_WITH_TEXT.has(notice)) return ok(stored);
    const draft = chatMessage(event, this.channel_id, notice);
    return draft.text === '' ? ok(stored) : ok(stored, this.chatRecord(draft));
  }

  private moderated(): Outcome {
    const { notification, channel_id } = this;
    const action = idText(notification.event['action']);
    if (action === null) return park('bad_payload', 'action is missing');
    const stored = MODERATED.get(action);
    if (stored === undefined) return this.chat(moderate(notification, channel_id, action));
    const detail = member(notification.event, action);
    return ok(this.stored(stored, isObject(detail) ? detail['user_id'] : undefined));
  }

  private stored({ type, person, times = [] }: Stored, about?: unknown): DraftRecord {
    const { event, raw } = this.notification;
    const whom = about ?? (person === undefined ? null : event[person]);
    return {
      ...this.facts(times.map((name) => event[name])),
      topic: TOPICS.platform_events,
      type: `twitch:${type}`,
      platform: 'twitch',
      ...people('twitch', [whom, ...this.persons]),
      raw,
    };
  }

  private chat(draft: ChatDraft, ...times: readonly unknown[]): Outcome {
    return ok(this.chatRecord(draft, times));
  }

  private chatRecord(draft: ChatDraft, times: readonly unknown[] = []): DraftRecord {
    return chatRecord(draft, this.notification.raw, this.facts(times), this.persons);
  }

  private facts(times: readonly unknown[]) {
    const { message_id, timestamp, type, event, is_look } = this.notification;
    const occurred_at = eventTime(this.received_at, ...times, timestamp);
    const sent_at = STREAM.test(type) ? eventTime(this.received_at, timestamp, occurred_at) : null;
    return {
      owner: { kind: 'account', account_id: this.account_id } as const,
      external_id: externalId('twitch', (is_look ? null : eventId(type, event)) ?? message_id),
      occurred_at,
      ...(sent_at !== null && (is_look ? { seen_at: sent_at } : { reported_at: sent_at })),
    };
  }
}
