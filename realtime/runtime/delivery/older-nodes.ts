/** How long an answer holds. */
const ASKED_MS = 1_000;

/** Whether nodes of the previous release may be connected, checked at most once a second. Default: false. */
export function olderNodesConnected(ask: (() => Promise<boolean>) | undefined): () => Promise<boolean> {
  let asked: { at: number; before: Promise<boolean> } | undefined;
  return async () => {
    if (!ask) return false;
    const at = performance.now();
    if (asked === undefined || at - asked.at > ASKED_MS) {
      // A failed check assumes older nodes, because a duplicate message is better than a lost one.
      asked = { at, before: ask().catch(() => true) };
    }
    return asked.before;
  };
}
