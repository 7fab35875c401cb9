/** What was opened, to be closed in the opposite order; whatever fails, the rest is closed too. */
export class Stops {
  private readonly parts: (() => unknown)[] = [];

  add(part: () => unknown): void {
    this.parts.push(part);
  }

  /** Safe to call twice. @throws AggregateError of all that failed */
  readonly all = atMostOnce(async () => {
    const failures: unknown[] = [];
    for (const part of this.parts.reverse()) {
      try {
        await part();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'stopping failed');
  });
}

/** Every call waits for the same one. */
export function atMostOnce(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
