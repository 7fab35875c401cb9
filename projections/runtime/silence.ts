import type { Batch } from './batch';
import { BEGINNING, type Checkpoint } from './checkpoints';
import { placeOf, type Parked } from './dead-letters';

/** Compares two places of one partition, like a sort comparator. */
export type ComparePlaces = (a: string, b: string) => number;

/** Offsets are the next to read, so a record is before an end when its own is below it. */
export const compareOffsets: ComparePlaces = (a, b) => Number(a) - Number(b);

/** Positions are of the last event seen: before the first there is none, and that comes before all. */
export const beginningFirst =
  (compare: ComparePlaces): ComparePlaces =>
  (a, b) =>
    a === BEGINNING || b === BEGINNING ? Number(a !== BEGINNING) - Number(b !== BEGINNING) : compare(a, b);

/**
 * Up to where a projection is built silently, by partition: the ends that its source had when the build began. They are
 * stored with the checkpoints, so that an interrupted build goes on in silence. Decision 0014.
 */
export class Silence {
  private readonly ends = new Map<number, string>();

  constructor(
    private readonly compare: ComparePlaces,
    /** Whether the item at an end belongs to what came before: of events it does, a topic's end is the next record. */
    private readonly inclusive: boolean,
  ) {}

  /** Takes the ends over from the stored checkpoints. */
  learn(checkpoints: Iterable<Checkpoint>): void {
    this.ends.clear();
    for (const { partition, silent_to, built } of checkpoints) {
      if (!built && silent_to !== null) this.ends.set(partition, silent_to);
    }
  }

  /** What was built meanwhile, by this process or another. */
  forget(checkpoints: Iterable<Checkpoint>): void {
    for (const { partition, built } of checkpoints) if (built) this.ends.delete(partition);
  }

  /** Some partition is not built yet. */
  get holds(): boolean {
    return this.ends.size > 0;
  }

  /** True when a move there would end the silence of its partition. */
  endsAt(partition: number, place: string): boolean {
    const end = this.ends.get(partition);
    return end !== undefined && this.compare(place, end) >= 0;
  }

  /** What of a batch comes before the ends, and then the rest; each with its own moves. */
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
      // Moved past it by another process, or by a build that knows of no silence.
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

  /** After the commit: partitions that were built are silent no longer. */
  passed(batch: Batch): void {
    for (const { partition, built } of batch.moves) if (built) this.ends.delete(partition);
  }

  private isBefore(item: Parked['item']): boolean {
    const { partition, position } = placeOf(item);
    const end = this.ends.get(partition);
    if (end === undefined) return false;
    const order = this.compare(position, end);
    return this.inclusive ? order <= 0 : order < 0;
  }
}
