import { failureKind } from '../../kernel/failures';
import { CheckpointLost } from '../../projections/runtime/checkpoint/checkpoints';

/** Parked lanes in a row, without a reaction that succeeded, after which the program or a grant is to blame. */
const MAX_PARKED_IN_A_ROW = 10;

/** True for an error that its event may have caused; an unavailable engine or another worker is never the event's. */
export const isOfEvent = (error: unknown): boolean =>
  !(error instanceof CheckpointLost) && ['data', 'bug'].includes(failureKind(error));

/**
 * Counts the failed tries of the event in front. Its lane may be parked, so that other accounts continue, after `tries`
 * failures and `park_after_ms` since the first, because a fault of seconds elsewhere must not park events. At most ten
 * lanes in a row are parked, because then no single event is to blame.
 */
export class FailedTries {
  private event_id = '';
  private count = 0;
  private failing_since_ms = 0;
  private in_a_row = 0;

  constructor(
    private readonly tries: number,
    private readonly park_after_ms: number,
    private readonly now_ms: () => number = () => performance.now(),
  ) {}

  /** Counts a failure; true when the event is to be parked. */
  exhausted(event_id: string, error: unknown): boolean {
    if (!isOfEvent(error)) return false;
    const now_ms = this.now_ms();
    if (this.event_id !== event_id) [this.event_id, this.count, this.failing_since_ms] = [event_id, 0, now_ms];
    this.count += 1;
    const due = this.count >= this.tries && now_ms - this.failing_since_ms >= this.park_after_ms;
    return due && this.in_a_row < MAX_PARKED_IN_A_ROW;
  }

  parked(): void {
    this.in_a_row += 1;
  }

  succeeded(): void {
    this.in_a_row = 0;
  }
}
