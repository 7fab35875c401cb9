import { TOPICS } from '../../domain/records';
import type { LinkedConnection, Received } from '../runtime/adapter';
import { readJson, storableJson } from '../runtime/text';
import { eventTime } from '../runtime/times';
import * as webhook from '../runtime/webhook';
import type { Outcome } from '../runtime/webhook';

export const TIPS = 'channel.tips';
/** A tip that waited has been allowed or rejected. */
export const MODERATED_TIPS = 'channel.tips.moderation';

/** What of a giver is never kept. */
const NEVER_KEPT: ReadonlySet<string> = new Set(['email', 'geo', 'ip', 'address']);

/**
 * A message of Astro to a record: tips that were paid and may be shown, each once, however often and in which topic
 * they come. Nothing is stored of the others. Source: spec doc3 §6.2.
 */
export function normaliseTips({ text, received_at }: Received, { account_id }: LinkedConnection): Outcome {
  if (account_id === null) return webhook.skip('no_account');
  const reading = readJson(storableJson(text));
  if (!reading.ok) return webhook.park(reading.reason, reading.detail);
  const at = (...path: string[]) => webhook.member(reading.value, ...path);
  const topic = at('topic');
  if (at('type') !== 'message' || (topic !== TIPS && topic !== MODERATED_TIPS)) return webhook.skip('unmapped_type');
  const tip = at('data');
  const of = (...path: string[]) => webhook.member(tip, ...path);
  const id = webhook.idText(of('_id'));
  if (id === null) return webhook.park('bad_payload', 'data._id is missing');
  if (of('status') !== 'success') return webhook.skip('not_paid');
  if (of('approved') !== 'allowed') return webhook.skip('not_allowed');
  const giver = webhook.idText(of('donation', 'user', 'username'))?.toLowerCase();
  return webhook.ok({
    owner: { kind: 'account', account_id },
    topic: TOPICS.platform_events,
    type: 'streamelements:tip',
    platform: 'streamelements',
    external_id: webhook.externalId('streamelements', id),
    occurred_at: eventTime(received_at, of('createdAt'), at('ts')),
    // The name is all that is known of who gives; without one the tip stands for them.
    subject: webhook.subjectOf('streamelements', giver ?? id),
    raw: JSON.stringify(tip, (name, value: unknown) => (NEVER_KEPT.has(name.toLowerCase()) ? undefined : value)),
  });
}
