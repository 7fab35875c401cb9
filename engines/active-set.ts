/** A task that runs until it is stopped; `done` settles at its end, and rejects with the cause of a failure. */
export interface Runs {
  readonly done: Promise<unknown>;
  stop(): Promise<void>;
}

/** Tasks that an engine has started and stops when it is closed itself. */
export class ActiveSet<One extends Runs> {
  private readonly all = new Set<One>();

  add<Added extends One>(one: Added): Added {
    this.all.add(one);
    const forget = () => void this.all.delete(one);
    one.done.then(forget, forget);
    return one;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.all].map((one) => one.stop()));
  }
}

/** Asks what runs under the controller to end and waits until it has; why it failed is for who looks at `done`. */
export async function ended(stopping: AbortController, done: Promise<unknown>): Promise<void> {
  stopping.abort();
  await done.catch(() => undefined);
}
