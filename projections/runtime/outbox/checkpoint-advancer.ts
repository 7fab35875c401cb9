/**
 * Position that a reader of events has seen, and its stored checkpoint. Batches and idle moves are serialised, because
 * both move the checkpoint from its present position; after a failed move no further one runs, and the next run begins
 * at the stored checkpoint.
 */
export class CheckpointAdvancer {
  /** Position up to which everything was processed. */
  seen: string;
  private moved_at = 0;
  private idle: NodeJS.Timeout | undefined;
  private turn: Promise<void> = Promise.resolve();

  constructor(
    /** Position of the stored checkpoint. */
    private at: string,
    private readonly options: {
      /** Minimum interval of storing a checkpoint past events of other types alone. */
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

  /** Whether the last store is so old that the checkpoint should move, although only other types passed. */
  get due(): boolean {
    return performance.now() - this.moved_at > this.options.idle_ms;
  }

  inTurn(work: () => Promise<void>): Promise<void> {
    return (this.turn = this.turn.then(work));
  }

  /** Notes the stored checkpoint. */
  moved(to: string): void {
    this.at = this.seen = to;
    this.moved_at = performance.now();
  }

  /** Schedules an idle move of the checkpoint, unless a batch moves it earlier, so that others see the progress. */
  later(): void {
    this.idle ??= setTimeout(() => {
      this.idle = undefined;
      this.inTurn(async () => {
        if (this.seen !== this.at) await this.options.moveIdle(this.seen);
      }).catch((error: unknown) => this.options.onFailure(error));
    }, this.options.idle_ms);
  }

  /** Cancels the scheduled idle move. */
  rest(): void {
    clearTimeout(this.idle);
    this.idle = undefined;
  }

  /** Resolves when the running move has ended, whatever its outcome. */
  async ended(): Promise<void> {
    await this.turn.catch(() => undefined);
  }
}
