/**
 * What all of them give. Waits for the others also when one has failed: none is still at work when that is told.
 * @throws the first failure in their order
 */
export async function allEnded<T>(all: Iterable<Promise<T>>): Promise<T[]> {
  return (await Promise.allSettled(all)).map((ended) => {
    if (ended.status === 'rejected') throw ended.reason;
    return ended.value;
  });
}
