import type { EventSubFrame } from '../../vendors/twitch/port';
import type { Link } from '../runtime/connection/adapter';

/** Most frames held; a busy chat has some hundred a second, and an opening takes a second or two. */
const MAX_HELD = 2_000;
/** Most characters held; frames are about two thousand long. */
const MAX_HELD_CHARACTERS = 4 * 1024 * 1024;

/**
 * Holds the frames of a session that is being opened while the former holder reads: if the opening fails, the former
 * holder stores them, because its successor has reported no open session.
 */
export class EarlyFrames {
  private held: EventSubFrame[] | null;
  private characters = 0;
  /** The session has failed, and its frames are the former holder's. */
  private is_left = false;

  constructor(
    private readonly link: Pick<Link, 'handed_over'>,
    private readonly deliver: (frame: EventSubFrame) => void,
  ) {
    this.held = link.handed_over ? [] : null;
  }

  /** True when the frame is held or left to the former holder; false when it is to be delivered at once. */
  hold(frame: EventSubFrame): boolean {
    if (this.is_left) return true;
    if (this.held === null) return false;
    this.held.push(frame);
    this.characters += frame.text.length;
    if (this.held.length > MAX_HELD || this.characters > MAX_HELD_CHARACTERS) this.release();
    return true;
  }

  /** Delivers all held frames, and holds none from now on: the session is open. */
  release(): void {
    const frames = this.held ?? [];
    this.held = null;
    for (const frame of frames) this.deliver(frame);
  }

  /**
   * Drops the held frames and those that arrive until the session is closed, unless the former holder's time is over:
   * the opening has failed. True when they are left to the former holder.
   */
  discard(): boolean {
    this.is_left = this.held !== null && this.link.handed_over;
    if (!this.is_left) this.release();
    return this.is_left;
  }
}
