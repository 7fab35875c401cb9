/** Stack of opened resources, closed in the opposite order; a failure does not keep the rest open. */
export class ShutdownStack {
  private readonly parts: (() => unknown)[] = [];

  add(part: () => unknown): void {
    this.parts.push(part);
  }

  /** Safe to call twice. @throws AggregateError of all that failed */
  readonly all = once(async () => {
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
export function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => (running ??= work());
}
