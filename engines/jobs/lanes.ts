/** Most running jobs of one lane in a process. */
export const LANE_WIDTH = 4;

/**
 * Counts the running jobs of each lane in this process. The more lanes run, the fewer jobs of each may: a lane that has
 * none finds a free place, or the next one that ends.
 */
export class Lanes {
  private readonly running = new Map<string, number>();

  /** @param places jobs of all lanes that this process runs at a time */
  constructor(private readonly places: number) {}

  /** Lanes that take no further job now. */
  full(): string[] {
    const width = this.width();
    return [...this.running].flatMap(([lane, count]) => (count >= width ? [lane] : []));
  }

  /** False when the lane is full. */
  enter(lane: string): boolean {
    const count = this.running.get(lane) ?? 0;
    if (count >= this.width()) return false;
    this.running.set(lane, count + 1);
    return true;
  }

  leave(lane: string): void {
    const count = this.running.get(lane)! - 1;
    if (count === 0) this.running.delete(lane);
    else this.running.set(lane, count);
  }

  /** Most jobs of a lane, so that one more lane has a place. */
  private width(): number {
    const share = Math.floor(this.places / (this.running.size + 1));
    return Math.min(LANE_WIDTH, Math.max(1, share));
  }
}
