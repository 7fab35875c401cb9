/** Minimum size of a list, as a part of the last confirmed one, for ending subscriptions of other channels. */
const LEAST_PART = 0.9;

/**
 * Decides whether a list of channels is reliable enough to end the subscriptions of all other channels. A list that is
 * more than a tenth shorter than the last confirmed one is confirmed once every list since then was as short.
 */
export class ListCheck {
  /** Size of the last confirmed list; before the first one every list counts as short. */
  private confirmed = Infinity;
  /** Start of the time since which all lists were short, and the size of the longest one; null without one. */
  private short: { since: number; size: number } | null = null;

  /** @param confirm_ms time for which a short list must last */
  constructor(private readonly confirm_ms: number) {}

  /**
   * @param is_complete false for a list that may lack channels: it confirms nothing
   * @param now monotonic milliseconds
   */
  isConfirmed(size: number, is_complete: boolean, now: number): boolean {
    if (!is_complete) {
      this.short = null;
      return false;
    }
    if (size < this.confirmed * LEAST_PART) {
      // A further loss begins the time again, because it may have another cause.
      if (this.short === null || size < this.short.size * LEAST_PART) this.short = { since: now, size };
      if (now - this.short.since < this.confirm_ms) return false;
    }
    this.confirmed = size;
    this.short = null;
    return true;
  }
}
