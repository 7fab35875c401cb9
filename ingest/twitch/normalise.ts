import type { ChatDraft } from '../../domain/chat-messages';
import { TOPICS } from '../../domain/records';
import type { LinkedConnection, Received } from '../runtime/adapter';
import { chatRecord, people } from '../runtime/chat-record';
import { MAX_DEPTH } from '../../kernel/json-depth';
import { eventTime, readTime } from '../runtime/times';
import { type DraftRecord, externalId, idText, member, ok, type Outcome, park, skip } from '../runtime/webhook';
import { chatMessage } from './chat';
import { MODERATED, NOTICES, NOTICES_TOLD_ELSEWHERE, type Stored, STORED } from './events';
import { isObject, type Notification, readFrame } from './frame';
import { ban, messageDelete, moderate, treatment, unban } from './moderation';
import { personsIn } from './people';
import { stateId } from './state';

/** Messages that arrive older than this are not acted on, as Twitch's own guard against replays has it. */
export const OLDEST_MS = 10 * 60_000;

/** The message behind `twitch:first_message`. */
const FIRST_MESSAGE = 'user_intro';

/** A frame of an EventSub socket to records, and what is not ours to keep. Spec doc3 §6.2, §6.4. */
export function normaliseTwitch(received: Received, { account_id, channel_id }: LinkedConnection): Outcome {
  if (account_id === null) return skip('no_account');
  const reading = readFrame(received);
  if (reading.kind === 'bad') return park(reading.reason, reading.detail);
  if (reading.kind === 'other') return skip('not_a_notification', reading.message_type.slice(0, 100));
  const { notification } = reading;
  const age_ms = received.age_ms ?? ageOf(notification, received.received_at);
  if (age_ms > OLDEST_MS) return skip('too_old');
  const persons = personsIn(notification.event, channel_id);
  if (persons === null) return park('too_deep', `nested deeper than ${MAX_DEPTH}`);
  return new Reader(notification, received.received_at, account_id, channel_id, persons).read();
}

/** By our clock; 0 where it does not say when it was sent. */
function ageOf({ timestamp }: Notification, received_at: number): number {
  const sent_at = readTime(timestamp);
  return sent_at === null ? 0 : received_at - sent_at;
}

/** One notification, for one channel. */
class Reader {
  constructor(
    private readonly notification: Notification,
    private readonly received_at: number,
    private readonly account_id: string,
    private readonly channel_id: string,
    /** Everybody whom it names. */
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
        return skip('unmapped_type', type.slice(0, 100));
    }
  }

  /** What is said; the first words of somebody are an event as well. */
  private message(): Outcome {
    const { event } = this.notification;
    const message_type = idText(event['message_type']) ?? 'text';
    const draft = chatMessage(event, this.channel_id, message_type);
    const said = this.chatRecord(draft);
    // In a shared chat somebody may be new to another channel's room.
    if (message_type !== FIRST_MESSAGE || draft.shared_chat !== null) return ok(said);
    return ok(said, this.stored({ type: 'first_message', person: 'chatter_user_id' }));
  }

  /** An event of ours, or a message of the chat: kinds that are not known here are kept with what they say. */
  private notice(): Outcome {
    const { event } = this.notification;
    const notice = idText(event['notice_type']);
    if (notice === null) return park('bad_payload', 'notice_type is missing');
    if (NOTICES_TOLD_ELSEWHERE.has(notice)) return skip('told_elsewhere', notice);
    const type = NOTICES.get(notice);
    if (type === undefined) return this.chat(chatMessage(event, this.channel_id, notice));
    // Who gives without a name is nobody, whatever account Twitch lends them.
    const person = event['chatter_is_anonymous'] === true ? undefined : 'chatter_user_id';
    return ok(this.stored({ type, person }));
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

  private stored({ type, person, identity, times = [] }: Stored, about?: unknown): DraftRecord {
    const { event, raw } = this.notification;
    const whom = about ?? (person === undefined ? null : event[person]);
    const id = identity === undefined ? null : idText(event[identity]);
    return {
      ...this.facts(times.map((name) => event[name])),
      ...(id !== null && { external_id: externalId('twitch', stateId(this.notification.type, id)) }),
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
    const { message_id, timestamp } = this.notification;
    return {
      owner: { kind: 'account', account_id: this.account_id } as const,
      external_id: externalId('twitch', message_id),
      occurred_at: eventTime(this.received_at, ...times, timestamp),
    };
  }
}
