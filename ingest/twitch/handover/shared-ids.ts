import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { readTime } from '../../../lib/time/vendor-times';
import { readJson } from '../../runtime/parse/text';
import { member, textOf } from '../../runtime/webhook/webhook';
import type { Received } from '../../runtime/connection/adapter';
import { namedByFrame } from '../conduit/condition';
import { eventId } from '../event-ids';
import { isObject, readFrame } from '../frame';

/** Maximum difference of the two times that Twitch gives to one event for two sessions. */
export const NEAR_MS = 1_000;
/** The successor numbers a wider range, so that it includes each event that the former holder numbers. */
const NUMBERED_MS = 2 * NEAR_MS;
/** Time after which no event is numbered. */
export const SETTLED_MS = 3 * NEAR_MS;
/** Bounds of the numbers that are kept: they matter for seconds after a subscription. */
const MAX_KEPT = 20_000;

type Frame = Pick<Received, 'text' | 'value'>;

/**
 * Ids of events that two holders of a channel receive around the boundary between them, and that have no id of their
 * own. Both holders number the events of equal content since the same boundary: the first one of the former holder and
 * the first one of the successor have one id, so do the second ones, and the ledger lets each id count once.
 */
export class SharedIds {
  private readonly counts = new LRUCache<string, number>({ max: MAX_KEPT });
  private readonly numbers = new LRUCache<string, number>({ max: MAX_KEPT });

  /**
   * For the successor: the id of a frame whose own subscription began about then; undefined for any other frame. The
   * frame names the time at which its subscription was created.
   */
  ofSuccessor(frame: Frame): string | undefined {
    const { value } = frame;
    const boundary = readTime(member(value, 'payload', 'subscription', 'created_at'));
    if (boundary === null || !isWithin(NUMBERED_MS, sentAt(value), boundary)) return undefined;
    return this.number(frame, boundary);
  }

  /** For the former holder: the id of a frame, by the time at which the successor's subscription was created. */
  ofFormer(frame: Frame, boundary: number): string | undefined {
    const value = valueOf(frame);
    const sent_at = sentAt(value);
    if (!isWithin(NUMBERED_MS, sent_at, boundary)) return undefined;
    // An event beyond the range keeps the pairs of earlier events with equal content in step.
    return this.number({ ...frame, value }, boundary, isWithin(NEAR_MS, sent_at, boundary));
  }

  /** Numbers an event without an id of its own; where `begins` is false only after another one of equal content. */
  private number(frame: Frame, boundary: number, begins = true): string | undefined {
    const reading = readFrame(frame);
    if (reading.kind !== 'notification') return undefined;
    const { message_id, type, event, raw } = reading.notification;
    if (eventId(type, event) !== null) return undefined;
    const name = namedByFrame(frame.value)?.name ?? type;
    const content = createHash('sha256').update(raw).digest('base64url');
    const shared = `handover:${name}:${boundary}:${content}`;
    const subscription = textOf(member(frame.value, 'payload', 'subscription', 'id')) ?? '';
    const key = `${subscription} ${shared}`;
    // Twitch may send a message twice.
    const message = `${key} ${message_id}`;
    const before = this.counts.get(key) ?? 0;
    if (!begins && before === 0) return undefined;
    const n = this.numbers.get(message) ?? before + 1;
    this.numbers.set(message, n);
    this.counts.set(key, Math.max(n, before));
    return `${shared}:${n}`;
  }
}

/** The parsed text of a frame. */
export function valueOf({ text, value }: Frame): unknown {
  if (value !== undefined) return value;
  const reading = readJson(text);
  return reading.ok ? reading.value : undefined;
}

/** Time at which Twitch sent the frame, Unix milliseconds; null without one. */
export const sentAt = (value: unknown): number | null => readTime(member(value, 'metadata', 'message_timestamp'));

export const isWithin = (ms: number, one: number | null, other: number): boolean =>
  one !== null && Math.abs(one - other) <= ms;

/** Whether the event of a frame has an id of its own, equal for every holder. */
export function hasOwnId(type: string, value: unknown): boolean {
  const event = member(value, 'payload', 'event');
  return isObject(event) && eventId(type, event) !== null;
}
