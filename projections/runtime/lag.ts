/** How far a projection is behind, and for how long it has not got on, as one process observes it. */
export class Lag {
  /** Behind by this many records (events: 0 or 1, positions cannot be counted) and seconds, as last observed. */
  observed = { behind: 0, seconds: 0 };
  private progressed_at = performance.now();
  private behind_since: number | null = null;
  private applied_at: string | null = null;

  /** A consumer begins: it has stood still for no time yet. */
  begin(): void {
    this.progressed_at = performance.now();
    this.behind_since = null;
  }

  /** A batch was passed; `at` is when its last record was appended, null when it held none. */
  progressed(at: string | null): void {
    this.progressed_at = performance.now();
    if (at !== null) this.applied_at = at;
  }

  /** Takes what was found; answers for how many milliseconds it stood still while behind, null when it is not. */
  observe(behind: number): number | null {
    const now = performance.now();
    if (behind === 0) this.behind_since = null;
    else this.behind_since ??= now;
    this.observed = { behind, seconds: Math.max(0, this.seconds(now)) };
    return this.behind_since === null ? null : now - Math.max(this.behind_since, this.progressed_at);
  }

  /** The age of what was applied last; since when it is behind as long as nothing was applied since then. */
  private seconds(now: number): number {
    if (this.behind_since === null) return 0;
    if (this.applied_at !== null && this.progressed_at > this.behind_since) {
      return (Date.now() - Date.parse(this.applied_at)) / 1000;
    }
    return (now - this.behind_since) / 1000;
  }
}
