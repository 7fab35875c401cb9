/** Lag of a projection and time without progress, as one process observes it. */
export class Lag {
  /** Behind by this many records (events: 0 or 1, positions cannot be counted) and seconds, as last observed. */
  observed = { behind: 0, seconds: 0 };
  private progressed_at = performance.now();
  private behind_since: number | null = null;
  private applied_at: string | null = null;

  /** A consumer begins: the time without progress starts now. */
  begin(): void {
    this.progressed_at = performance.now();
    this.behind_since = null;
  }

  /** Notes a processed batch; `at` is when its last record was appended, null for an empty batch. */
  progressed(at: string | null): void {
    this.progressed_at = performance.now();
    if (at !== null) this.applied_at = at;
  }

  /** Notes the lag; returns the milliseconds without progress while behind, null when not behind. */
  observe(behind: number): number | null {
    const now = performance.now();
    if (behind === 0) this.behind_since = null;
    else this.behind_since ??= now;
    this.observed = { behind, seconds: Math.max(0, this.seconds(now)) };
    return this.behind_since === null ? null : now - Math.max(this.behind_since, this.progressed_at);
  }

  /** Age of the last applied record; without progress since it is behind, the time since then. */
  private seconds(now: number): number {
    if (this.behind_since === null) return 0;
    if (this.applied_at !== null && this.progressed_at > this.behind_since) {
      return (Date.now() - Date.parse(this.applied_at)) / 1000;
    }
    return (now - this.behind_since) / 1000;
  }
}
