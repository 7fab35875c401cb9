import { keptId, member, textOf } from '../../runtime/webhook/webhook';
import { isObject, type Members } from '../frame';

/** Maximum time between the two reports of one act: Twitch reports an act of a moderator under two types. */
const APART_MS = 15_000;
/** Maximum unmatched acts of a channel, each kept for 15 s: no moderators do more, and 256 take some 100 kB. */
const MOST = 256;
/** Maximum reports of one act by one source; each has its own counterpart. */
const MAX_ALIKE = 8;

/**
 * Distinguishes the second report of one act from another act: `channel.moderate` and the types of their own
 * (`channel.ban`, `channel.unban`, `channel.chat.message_delete`) each report it, in any order.
 */
export class DuplicateModerationFilter {
  /** Times of unmatched reports by act and source. */
  private readonly single = new Map<string, { source: string; at: number }[]>();

  /** Whether the other source has reported this very act already. */
  isSecond(type: string, event: Members, at: number): boolean {
    const act = actOf(type, event);
    if (act === null) return false;
    const source = type === 'channel.moderate' ? 'moderate' : 'own';
    const heard = (this.single.get(act) ?? []).filter((one) => at - one.at < APART_MS);
    this.single.delete(act);
    const twin = heard.findIndex((one) => one.source !== source);
    if (twin >= 0) heard.splice(twin, 1);
    else heard.push({ source, at });
    if (heard.length > MAX_ALIKE) heard.shift();
    if (heard.length > 0) this.single.set(act, heard);
    // Evicts the oldest act, which is the first in the map.
    if (this.single.size > MOST) this.single.delete(this.single.keys().next().value!);
    return twin >= 0;
  }
}

/** Key of an act, equal for both sources; null for events with a single report. */
function actOf(type: string, event: Members): string | null {
  switch (type) {
    case 'channel.ban':
      return named('ban', event['user_id']);
    case 'channel.unban':
      return named('unban', event['user_id']);
    case 'channel.chat.message_delete':
      return named('delete', event['message_id']);
    case 'channel.moderate': {
      const action = textOf(event['action']) ?? '';
      const detail = member(event, action);
      if (!isObject(detail)) return null;
      if (action === 'ban' || action === 'timeout') return named('ban', detail['user_id']);
      if (action === 'unban' || action === 'untimeout') return named('unban', detail['user_id']);
      return action === 'delete' ? named('delete', detail['message_id']) : null;
    }
    default:
      return null;
  }
}

const named = (act: string, id: unknown): string | null => {
  const text = keptId(id);
  return text === null ? null : `${act} ${text}`;
};
