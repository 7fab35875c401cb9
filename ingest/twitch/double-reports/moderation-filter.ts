import type { Counter } from '../../../engines/metrics/port';
import type { EventSubFrame } from '../../../vendors/twitch/port';
import type { Members } from '../frame';
import { deletedMessage, HeldDeletes } from './held-deletes';
import { DuplicateModerationFilter } from './duplicate-moderation';

/** Keeps one of the two reports of a moderation act: of a deletion the one that names the moderator. */
export class ModerationFilter {
  private readonly twins = new DuplicateModerationFilter();
  private readonly deletes: HeldDeletes;

  /** @param release delivers a held frame whose replacement has not arrived */
  constructor(
    release: (frame: EventSubFrame) => void,
    private readonly dropped: Counter,
  ) {
    this.deletes = new HeldDeletes(release);
  }

  /**
   * False when the frame is dropped, or held until its replacement arrives.
   * @param has_moderate whether the session receives `channel.moderate`
   */
  passes(type: string, event: Members, frame: EventSubFrame, has_moderate: boolean): boolean {
    const deleted = deletedMessage(type, event);
    const names_moderator = type === 'channel.moderate';
    if (this.twins.isSecond(type, event, frame.received_at)) {
      this.dropped.inc();
      // Only channel.moderate names the moderator of a deletion.
      return deleted !== null && names_moderator && this.deletes.discard(deleted);
    }
    if (deleted === null || names_moderator || !has_moderate) return true;
    this.deletes.hold(deleted, frame);
    return false;
  }

  /** Delivers all held frames. */
  close(): void {
    this.deletes.releaseAll();
  }
}
