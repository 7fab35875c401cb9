import { isDeepStrictEqual } from 'node:util';
import type { LinkedConnection } from '../../runtime/connection/adapter';
import { mayBeBefore, isBefore } from '../../runtime/parse/times';
import { type Subscription, SUBSCRIPTIONS } from '../subscriptions';
import type { KeptSubscription, SubscriptionChange } from './store';

const MESSAGE = 'channel.chat.message';
const MODERATE = 'channel.moderate';
/** Each reports an act that `channel.moderate` reports as well. */
const REPORTED_BY_MODERATE: ReadonlySet<string> = new Set([
  'channel.ban',
  'channel.unban',
  'channel.chat.message_delete',
]);
/**
 * Types of chat and moderation. All of a channel's arrive over one transport, because a deletion waits there for the
 * report that names its moderator. An app's token needs consents for reading a chat that a user's token does not need.
 */
const CHAT: ReadonlySet<string> = new Set([
  MESSAGE,
  'channel.chat.notification',
  MODERATE,
  ...REPORTED_BY_MODERATE,
  'channel.suspicious_user.message',
  'channel.suspicious_user.update',
]);

/** Status of a missing consent: a user's token would be refused as well, unless the subscription is one of the chat. */
export const NO_CONSENT = 403;

/** Subscriptions of one channel: those over the conduit, those that can be made there, and those left to a socket. */
export class ChannelPlan {
  private readonly kept = new Map<string, SubscriptionChange>();
  /** Subscriptions refused for a reason that may pass. */
  private readonly failed = new Set<string>();
  private times: Readonly<Record<string, string>> | undefined;

  constructor(
    private readonly connection: Pick<LinkedConnection, 'since'>,
    kept: readonly KeptSubscription[],
  ) {
    for (const one of kept) this.note(one);
  }

  /** Notes a change; false when it is known already. */
  note({ name, subscription_id, since, refused, consent }: SubscriptionChange): boolean {
    const change = { name, subscription_id, since, refused, consent };
    if (isDeepStrictEqual(this.kept.get(name), change)) return false;
    this.kept.set(name, change);
    this.times = undefined;
    return true;
  }

  /** Notes a refusal for another reason than a missing consent; the next session tries again. */
  fail(name: string): void {
    this.failed.add(name);
  }

  /** The next subscription to make over the conduit. */
  next(): Subscription | undefined {
    return ORDERED.find(({ name }) => !this.isMade(name) && this.isFree(name) && this.isPossible(name));
  }

  /** Subscriptions that need a socket of the owner's. */
  onSocket(): Subscription[] {
    return SUBSCRIPTIONS.filter(({ name }) => {
      if (this.isMade(name) || !this.isNeeded(name)) return false;
      return CHAT.has(name) && !this.isMade(MESSAGE) ? true : !this.isRefused(name);
    });
  }

  /** Types that Twitch refuses over any transport. */
  refused(): { type: string; message: string }[] {
    const names = new Set(this.onSocket().map(({ name }) => name));
    return SUBSCRIPTIONS.flatMap(({ name, type }) => {
      const message = this.kept.get(name)?.refused;
      return this.isRefused(name) && this.isNeeded(name) && !names.has(name) ? [{ type, message: message ?? '' }] : [];
    });
  }

  /**
   * Start by type, and by name where both differ: time from which the conduit receives it in all its conditions, by
   * Twitch's clock (RFC 3339).
   */
  since(): Readonly<Record<string, string>> {
    return (this.times ??= this.timesNow());
  }

  private timesNow(): Record<string, string> {
    const since: Record<string, string> = {};
    for (const type of new Set(SUBSCRIPTIONS.map((one) => one.type))) {
      const times = SUBSCRIPTIONS.filter((one) => one.type === type).map(({ name }) => this.sinceOf(name));
      if (times.some((time) => time === null)) continue;
      since[type] = (times as string[]).reduce((last, time) => (isBefore(last, time) ? time : last));
    }
    for (const { name, type } of SUBSCRIPTIONS) {
      const own = name === type || since[type] === undefined ? null : this.sinceOf(name);
      if (own !== null) since[name] = own;
    }
    return since;
  }

  /** Whether the conduit also receives an event of the socket, by its subscription's name and time. */
  receives(name: string, sent_at: unknown): boolean {
    const since = this.sinceOf(name);
    return since !== null && typeof sent_at === 'string' && !mayBeBefore(sent_at, since);
  }

  private sinceOf(name: string): string | null {
    const kept = this.kept.get(this.isNeeded(name) ? name : MODERATE);
    return kept?.subscription_id ? kept.since : null;
  }

  private isMade(name: string): boolean {
    return Boolean(this.kept.get(name)?.subscription_id);
  }

  /** True when Twitch refused it for the owner's latest consent. */
  private isRefused(name: string): boolean {
    const kept = this.kept.get(name);
    return kept !== undefined && kept.refused !== null && kept.consent === (this.connection.since ?? null);
  }

  private isFree(name: string): boolean {
    return !this.isRefused(name) && !this.failed.has(name);
  }

  private isNeeded(name: string): boolean {
    return !(REPORTED_BY_MODERATE.has(name) && this.isMade(MODERATE));
  }

  private isPossible(name: string): boolean {
    if (!CHAT.has(name) || name === MESSAGE) return true;
    if (!this.isMade(MESSAGE) || !this.isNeeded(name)) return false;
    return !REPORTED_BY_MODERATE.has(name) || !this.isFree(MODERATE);
  }
}

/** Messages come before the rest of the chat, and `channel.moderate` before the types that it replaces. */
const ORDERED: readonly Subscription[] = [
  ...SUBSCRIPTIONS.filter(({ name }) => !CHAT.has(name)),
  ...SUBSCRIPTIONS.filter(({ name }) => name === MESSAGE),
  ...SUBSCRIPTIONS.filter(({ name }) => CHAT.has(name) && name !== MESSAGE && !REPORTED_BY_MODERATE.has(name)),
  ...SUBSCRIPTIONS.filter(({ name }) => REPORTED_BY_MODERATE.has(name)),
];
