/** More tasks wait than may wait. */
export class TooManyWait extends Error {}

/** Semaphore: a bounded number of tasks run at a time, the others wait in their order of arrival. */
export class Slots {
  private readonly waiting: (() => void)[] = [];

  constructor(
    private free: number,
    private readonly most_waiting = Infinity,
  ) {}

  /** @throws TooManyWait where no more may wait */
  async use<T>(work: () => Promise<T>): Promise<T> {
    if (this.free > 0) this.free -= 1;
    else if (this.waiting.length >= this.most_waiting) throw new TooManyWait(`${this.most_waiting} tasks wait`);
    else await new Promise<void>((turn) => this.waiting.push(turn));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free += 1;
    }
  }
}
