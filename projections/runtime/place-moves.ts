/**
 * How far a reader of events has seen, and where its checkpoint stands. Batches and idle moves take turns, since both
 * move it from where it stands; after one that failed no turn comes any more, and the next life begins at the stored
 * checkpoint.
 */
export class PlaceMoves {
  /** Everything up to there was passed. */
  seen: string;
  private moved_at = 0;
  private idle: NodeJS.Timeout | undefined;
  private turn: Promise<void> = Promise.resolve();

  constructor(
    /** Where the checkpoint stands. */
    private at: string,
    private readonly options: {
      /** A checkpoint over events of other types alone is written at most this often. */
      idle_ms: number;
      moveIdle(to: string): Promise<void>;
      onFailure(error: unknown): void;
    },
  ) {
    this.seen = at;
  }

  get stored(): string {
    return this.at;
  }

  /** Whether nothing was stored for so long that the checkpoint should move, though only other types went by. */
  get due(): boolean {
    return performance.now() - this.moved_at > this.options.idle_ms;
  }

  inTurn(work: () => Promise<void>): Promise<void> {
    return (this.turn = this.turn.then(work));
  }

  /** The checkpoint was stored there. */
  moved(to: string): void {
    this.at = this.seen = to;
    this.moved_at = performance.now();
  }

  /** Moves the checkpoint a little later, unless something comes that does: others should see how far it is. */
  later(): void {
    this.idle ??= setTimeout(() => {
      this.idle = undefined;
      this.inTurn(async () => {
        if (this.seen !== this.at) await this.options.moveIdle(this.seen);
      }).catch((error: unknown) => this.options.onFailure(error));
    }, this.options.idle_ms);
  }

  /** Moves it over other types no more. */
  rest(): void {
    clearTimeout(this.idle);
    this.idle = undefined;
  }

  /** Resolves when what has its turn is over, however it ended. */
  async ended(): Promise<void> {
    await this.turn.catch(() => undefined);
  }
}
