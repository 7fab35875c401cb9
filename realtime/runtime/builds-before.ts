/** How long an answer holds. */
const ASKED_MS = 1_000;

/** Whether nodes of a build before may be connected, asked at most once a second. Default: none is. */
export function buildsBefore(ask: (() => Promise<boolean>) | undefined): () => Promise<boolean> {
  let asked: { at: number; before: Promise<boolean> } | undefined;
  return async () => {
    if (!ask) return false;
    const at = performance.now();
    if (asked === undefined || at - asked.at > ASKED_MS) {
      // Where it cannot be told, it is better said twice than not at all.
      asked = { at, before: ask().catch(() => true) };
    }
    return asked.before;
  };
}
