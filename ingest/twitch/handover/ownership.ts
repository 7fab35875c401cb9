import type { Json } from '../../../lib/json/json';
import { readTime } from '../../../lib/time/vendor-times';
import type { Owner, Received } from '../../runtime/connection/adapter';
import { isBefore, mayBeBefore } from '../../runtime/parse/times';
import { member, textOf } from '../../runtime/webhook/webhook';
import { namedByFrame } from '../conduit/condition';
import { readingsAfter } from './readings';
import { hasOwnId, isWithin, NEAR_MS, sentAt, type SharedIds, valueOf } from './shared-ids';

/**
 * Owner of a frame that a former holder received: the first later holder whose subscription was created at or before
 * the frame's time, by Twitch's clock, else the former holder. Within {@link NEAR_MS} of a creation both holders store
 * the event under one id.
 *
 * @param state kept state of the present holder
 * @param holding of the former holder
 */
export function ownerOf(frame: Received, state: Json, holding: number, shared: SharedIds): Owner {
  const value = valueOf(frame);
  const type = textOf(member(value, 'metadata', 'subscription_type')) ?? '';
  const name = namedByFrame(value)?.name ?? type;
  const sent = member(value, 'metadata', 'message_timestamp');
  for (const { since, until } of readingsAfter(state, holding)) {
    const start = since[name] ?? since[type];
    const boundary = readTime(start);
    // A type that no later holder receives belongs to the former holder.
    if (start === undefined || boundary === null) continue;
    const shared_id = hasOwnId(type, value) ? undefined : shared.ofFormer(frame, boundary);
    if (shared_id !== undefined) return { shared_id };
    if (isWithin(NEAR_MS, sentAt(value), boundary)) return 'former';
    if (!mayBeBefore(sent, start) && (until === undefined || !isBefore(until, sent))) return 'successor';
  }
  return 'former';
}
