/** Calls every listener. An error of one is reported by the runtime and does not stop the others. */
export function tell<Listener>(listeners: ReadonlySet<Listener>, call: (listener: Listener) => void): void {
  for (const listener of [...listeners]) {
    try {
      call(listener);
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** @throws Error when it takes longer */
export async function within<T>(most_ms: number, work: () => Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_done, fail) => {
    timer = setTimeout(() => fail(new Error(`the token was not there within ${most_ms} ms`)), most_ms);
  });
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}
