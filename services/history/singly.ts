/** Runs the work of each session by itself: the failure of one delays no other, and is thrown at the end. */
export class Singly {
  private readonly failures: unknown[] = [];

  /** Number of sessions whose work returned true. */
  async each<Item>(items: readonly Item[], isOver: () => boolean, work: (item: Item) => Promise<boolean>) {
    let done = 0;
    for (const item of items) {
      if (isOver()) break;
      try {
        done += Number(await work(item));
      } catch (error) {
        this.failures.push(error);
      }
    }
    return done;
  }

  /** @throws the first failure */
  end(): void {
    if (this.failures.length > 0) throw this.failures[0];
  }
}
