/**
 * Results of all promises. Waits for the others also after a failure, so that none still runs when it rejects.
 * @throws the first failure in their order
 */
export async function allSettledOrThrow<T extends readonly unknown[]>(
  all: readonly [...{ [K in keyof T]: Promise<T[K]> }],
): Promise<T> {
  const results = (await Promise.allSettled(all as readonly Promise<unknown>[])).map((ended) => {
    if (ended.status === 'rejected') throw ended.reason;
    return ended.value;
  });
  return results as unknown as T;
}
