import { TOPICS } from '../../domain/common/records';
import type { LinkedConnection, Received } from '../runtime/connection/adapter';
import { readJson, storableJson } from '../runtime/parse/text';
import { eventTime } from '../runtime/parse/times';
import * as webhook from '../runtime/webhook/webhook';
import type { Outcome } from '../runtime/webhook/webhook';

export const TIPS = 'channel.tips';
/** Topic of tips that a moderator has allowed or rejected. */
export const MODERATED_TIPS = 'channel.tips.moderation';

/** Astro's own messages, and its topics without a subscription here. */
const PROTOCOL: ReadonlySet<string> = new Set(['welcome', 'reconnect', 'response', 'subscribe', 'unsubscribe']);
const TOPIC = /^channel\.(?:activities|session|stream|chat|overlay)[.a-z_-]*$/;
/** States of a tip that is not, or not yet, to be shown; a further message reports the next state. */
const NOT_PAID: ReadonlySet<string> = new Set(['pending', 'failed', 'canceled', 'cancelled', 'refunded', 'disputed']);
const NOT_ALLOWED: ReadonlySet<string> = new Set(['pending', 'rejected']);

/** A text value of Astro; for other types the name of the type, which is unknown as a word. */
const wordOf = (value: unknown): string => (typeof value === 'string' ? value : typeof value);

/** Personal members of a giver that are never stored. */
const NEVER_KEPT: ReadonlySet<string> = new Set(['email', 'geo', 'ip', 'address']);

/**
 * Converts a message of Astro to a record: tips that were paid and may be shown, each once, however often and in which
 * topic they arrive. Other tips are not stored. Source: spec doc3 §6.2.
 */
export function normaliseTips({ text, received_at }: Received, { account_id }: LinkedConnection): Outcome {
  if (account_id === null) return webhook.skip('no_account');
  const reading = readJson(storableJson(text));
  if (!reading.ok) return webhook.park(reading.reason, reading.detail);
  const at = (...path: string[]) => webhook.member(reading.value, ...path);
  const topic = at('topic');
  const type = wordOf(at('type'));
  if (type !== 'message') return webhook.unmapped(type, PROTOCOL.has(type));
  if (topic !== TIPS && topic !== MODERATED_TIPS) return webhook.unmapped(wordOf(topic), TOPIC.test(wordOf(topic)));
  const tip = at('data');
  const of = (...path: string[]) => webhook.member(tip, ...path);
  const id = webhook.idText(of('_id'));
  if (id === null) return webhook.park('bad_payload', 'data._id is missing');
  const [status, approved] = [wordOf(of('status')), wordOf(of('approved'))];
  if (status !== 'success')
    return NOT_PAID.has(status) ? webhook.skip('not_paid') : webhook.park('unknown_status', status.slice(0, 100));
  if (approved !== 'allowed')
    return NOT_ALLOWED.has(approved)
      ? webhook.skip('not_allowed')
      : webhook.park('unknown_approval', approved.slice(0, 100));
  const giver = webhook.idText(of('donation', 'user', 'username'))?.toLowerCase();
  return webhook.ok({
    owner: { kind: 'account', account_id },
    topic: TOPICS.platform_events,
    type: 'streamelements:tip',
    platform: 'streamelements',
    external_id: webhook.externalId('streamelements', id),
    occurred_at: eventTime(received_at, of('createdAt'), at('ts')),
    // The giver is known by name alone; without a name the tip's id is the subject.
    subject: webhook.subjectOf('streamelements', giver ?? id),
    raw: JSON.stringify(tip, (name, value: unknown) => (NEVER_KEPT.has(name.toLowerCase()) ? undefined : value)),
  });
}
