/**
 * Does the work every so often, one at a time; a turn that finds it at work is left out. It keeps no process alive.
 * What the work throws is told, and it is done again at the next turn. Answers with what ends it.
 */
export function regularly(every_ms: number, work: () => Promise<void>, failed: (error: unknown) => void): () => void {
  let working = false;
  const turn = async () => {
    if (working) return;
    working = true;
    await work()
      .catch(failed)
      .finally(() => (working = false));
  };
  const timer = setInterval(() => void turn(), every_ms);
  timer.unref();
  return () => clearInterval(timer);
}
