import type { EventSubFrame } from '../../../vendors/twitch/port';
import { keptId, member } from '../../runtime/webhook/webhook';
import type { Members } from '../frame';

/** Longest wait for the `channel.moderate` of a deletion; Twitch sends both within some 150 ms. */
const HOLD_MS = 2_000;
/** Deletions of one channel that wait; the oldest is released beyond, so that memory stays below 300 kB. */
const MAX_HELD = 256;

/** Id of the deleted message, in either of the two types that report a deletion; null in any other event. */
export function deletedMessage(type: string, event: Members): string | null {
  if (type === 'channel.chat.message_delete') return keptId(event['message_id']);
  return type === 'channel.moderate' && event['action'] === 'delete'
    ? keptId(member(event, 'delete', 'message_id'))
    : null;
}

/**
 * Delays `channel.chat.message_delete`, which names no moderator, until `channel.moderate` replaces it or the wait is
 * over. Every held frame is either discarded by its replacement or released once.
 */
export class HeldDeletes {
  private readonly held = new Map<string, { frame: EventSubFrame; timer: NodeJS.Timeout }>();

  constructor(private readonly release: (frame: EventSubFrame) => void) {}

  hold(message_id: string, frame: EventSubFrame): void {
    this.discard(message_id);
    this.held.set(message_id, { frame, timer: setTimeout(() => this.releaseOne(message_id), HOLD_MS) });
    if (this.held.size > MAX_HELD) this.releaseOne(this.held.keys().next().value!);
  }

  /**
   * Drops the held frame of a message, because another frame reports the same deletion. False when none is held: it
   * was released before.
   */
  discard(message_id: string): boolean {
    clearTimeout(this.held.get(message_id)?.timer);
    return this.held.delete(message_id);
  }

  releaseAll(): void {
    for (const message_id of [...this.held.keys()]) this.releaseOne(message_id);
  }

  private releaseOne(message_id: string): void {
    const frame = this.held.get(message_id)?.frame;
    this.discard(message_id);
    if (frame !== undefined) this.release(frame);
  }
}
