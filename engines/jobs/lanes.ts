/** Most running jobs of one lane in a process. */
export const LANE_WIDTH = 4;

/** Counts the running jobs of each lane in this process. */
export class Lanes {
  private readonly running = new Map<string, number>();

  /** Lanes that take no further job now. */
  full(): string[] {
    return [...this.running].flatMap(([lane, count]) => (count >= LANE_WIDTH ? [lane] : []));
  }

  /** False when the lane is full. */
  enter(lane: string): boolean {
    const count = this.running.get(lane) ?? 0;
    if (count >= LANE_WIDTH) return false;
    this.running.set(lane, count + 1);
    return true;
  }

  leave(lane: string): void {
    const count = this.running.get(lane)! - 1;
    if (count === 0) this.running.delete(lane);
    else this.running.set(lane, count);
  }
}
