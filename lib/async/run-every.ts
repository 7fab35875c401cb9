/**
 * Runs the work every `every_ms`, one run at a time; a run that is still under way skips the next one. It keeps no
 * process alive. An error goes to `failed`, and the next run follows. Returns the function that ends it.
 */
export function runEvery(every_ms: number, work: () => Promise<void>, failed: (error: unknown) => void): () => void {
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
