import type { Batch } from './batch';
import { BEGINNING, type Checkpoint } from '../checkpoint/checkpoints';
import { positionOf, type Parked } from '../dead-letter/dead-letters';

/** Compares two positions of one partition, like a sort comparator. */
export type ComparePositions = (a: string, b: string) => number;

/** An offset is the next to read, so a record is before an end when its own offset is lower. */
export const compareOffsets: ComparePositions = (a, b) => Number(a) - Number(b);

/** A position is of the last event seen: the beginning has none, and sorts first. */
export const beginningFirst =
  (compare: ComparePositions): ComparePositions =>
  (a, b) =>
    a === BEGINNING || b === BEGINNING ? Number(a !== BEGINNING) - Number(b !== BEGINNING) : compare(a, b);

/**
 * Ends of the silent build of a projection, by partition: those that its source had when the build began. They are
 * stored with the checkpoints, so that an interrupted build continues silently. Decision 0014.
 */
export class InitialBuildBoundary {
  private readonly ends = new Map<number, string>();

  constructor(
    private readonly compare: ComparePositions,
    /** Whether the item at an end belongs to the silent part: an event does, while a topic's end is the next record. */
    private readonly inclusive: boolean,
  ) {}

  /** Loads the ends from the stored checkpoints. */
  learn(checkpoints: Iterable<Checkpoint>): void {
    this.ends.clear();
    for (const { partition, silent_to, built } of checkpoints) {
      if (!built && silent_to !== null) this.ends.set(partition, silent_to);
    }
  }

  /** Forgets partitions that this process or another has built. */
  forget(checkpoints: Iterable<Checkpoint>): void {
    for (const { partition, built } of checkpoints) if (built) this.ends.delete(partition);
  }

  /** True while some partition is not built yet. */
  get active(): boolean {
    return this.ends.size > 0;
  }

  /** True when a move there would end the silence of its partition. */
  endsAt(partition: number, place: string): boolean {
    const end = this.ends.get(partition);
    return end !== undefined && this.compare(place, end) >= 0;
  }

  /** Splits a batch at the ends into a silent part and the rest, each with its own moves. */
  split(batch: Batch): Batch[] {
    if (!batch.moves.some(({ partition }) => this.ends.has(partition))) return [batch];
    const silent: Batch = { items: [], undecodable: [], moves: [], trace: batch.trace, silent: true };
    const rest: Batch = { items: [], undecodable: [], moves: [], trace: batch.trace };
    for (const item of batch.items) (this.isBefore(item) ? silent : rest).items.push(item);
    for (const parked of batch.undecodable) (this.isBefore(parked.item) ? silent : rest).undecodable.push(parked);
    for (const { partition, from, to } of batch.moves) {
      const end = this.ends.get(partition);
      if (end === undefined) {
        rest.moves.push({ partition, from, to });
        continue;
      }
      // Another process, or a release without silent builds, has moved past the end.
      if (this.compare(from, end) >= 0) {
        rest.moves.push({ partition, from, to, built: true });
        continue;
      }
      const built = this.compare(to, end) >= 0;
      silent.moves.push({ partition, from, to: built ? end : to, built });
      if (this.compare(to, end) > 0) rest.moves.push({ partition, from: end, to });
    }
    return [silent, rest].filter(({ moves }) => moves.length > 0);
  }

  /** Called after the commit: built partitions are no longer silent. */
  passed(batch: Batch): void {
    for (const { partition, built } of batch.moves) if (built) this.ends.delete(partition);
  }

  private isBefore(item: Parked['item']): boolean {
    const { partition, position } = positionOf(item);
    const end = this.ends.get(partition);
    if (end === undefined) return false;
    const order = this.compare(position, end);
    return this.inclusive ? order <= 0 : order < 0;
  }
}
