/** Pieces that this process took and gave back. */
export interface Moves {
  taken: string[];
  /** Number of those that another member held before. */
  taken_over: number;
  returned: string[];
}

const noMoves = (): Moves => ({ taken: [], taken_over: 0, returned: [] });

/** Counts the pieces of one kind that this process takes and gives back. */
export class MoveCounts {
  /** Names that this process holds, also while its view is read again. */
  private readonly held = new Set<string>();
  /** Free names that another member held before. */
  private readonly left = new Set<string>();
  private moves = noMoves();

  /** Called when the view is read again. */
  reset(): void {
    this.left.clear();
  }

  /** @param from_other whether another member holds the name in the view of this process */
  gain(name: string, from_other: boolean): void {
    if (this.held.has(name)) return;
    this.held.add(name);
    if (this.left.delete(name) || from_other) this.moves.taken_over += 1;
    this.moves.taken.push(name);
  }

  lose(name: string): void {
    if (this.held.delete(name)) this.moves.returned.push(name);
  }

  /** Another member's hold has ended. */
  leave(name: string): void {
    this.left.add(name);
  }

  /** Moves since the last call. */
  take(): Moves {
    const { moves } = this;
    this.moves = noMoves();
    return moves;
  }
}
