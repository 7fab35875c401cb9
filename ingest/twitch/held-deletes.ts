import type { EventSubFrame } from '../../vendors/twitch/port';
import { keptId, member } from '../runtime/webhook/webhook';
import type { Members } from './frame';

/** Longest wait for the `channel.moderate` of a deletion; Twitch sends both within some 150 ms. */
const HOLD_MS = 2_000;
/** Deletions of one channel that wait; the oldest is released beyond, so that memory stays below 300 kB. */
const MAX_HELD = 256;

/** Id of the deleted message, in either of the two types that report a deletion; null in any other event. */
function deletedMessage(type: string, event: Members): string | null {
  if (type === 'channel.chat.message_delete') return keptId(event['message_id']);
  return type === 'channel.moderate' && event['action'] === 'delete'
    ? keptId(member(event, 'delete', 'message_id'))
    : null;
}

/**
 * Delays `channel.chat.message_delete`, which names no moderator, until `channel.moderate` replaces it or the wait is
 * over: the live message of a deletion is sent once. Every held frame is either replaced or released once; reports of
 * one act that both pass are merged by the moderation log.
 */
export class HeldDeletes {
  private readonly held = new Map<string, { frame: EventSubFrame; timer: NodeJS.Timeout }>();

  /** @param release delivers a held frame whose replacement has not arrived */
  constructor(private readonly release: (frame: EventSubFrame) => void) {}

  /**
   * Whether the frame is held until its replacement arrives.
   * @param has_moderate whether the session receives `channel.moderate`
   */
  hold(type: string, event: Members, frame: EventSubFrame, has_moderate: boolean): boolean {
    const message_id = deletedMessage(type, event);
    if (message_id === null) return false;
    this.discard(message_id);
    if (type === 'channel.moderate' || !has_moderate) return false;
    this.held.set(message_id, { frame, timer: setTimeout(() => this.releaseOne(message_id), HOLD_MS) });
    if (this.held.size > MAX_HELD) this.releaseOne(this.held.keys().next().value!);
    return true;
  }

  releaseAll(): void {
    for (const message_id of [...this.held.keys()]) this.releaseOne(message_id);
  }

  private discard(message_id: string): void {
    clearTimeout(this.held.get(message_id)?.timer);
    this.held.delete(message_id);
  }

  private releaseOne(message_id: string): void {
    const frame = this.held.get(message_id)?.frame;
    this.discard(message_id);
    if (frame !== undefined) this.release(frame);
  }
}
