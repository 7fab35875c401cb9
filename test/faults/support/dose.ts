import { PATIENCE_MS } from '../../support/patience';

/** How much is injected: `ci` keeps the stage short, `full` is what faults deserve (LUMIO_FAULT_DOSE=full). */
export const DOSE: 'ci' | 'full' = process.env.LUMIO_FAULT_DOSE === 'full' ? 'full' : 'ci';

export const dose = <T>(ci: T, full: T): T => (DOSE === 'full' ? full : ci);

/** Repeats a run: `LUMIO_TEST_SEED=… npm run test:faults`. */
export const SEED = Number(process.env.LUMIO_TEST_SEED ?? 20260214);

/** Numbers in [0, 1), the same for the same seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Waits until `look` holds, asking every 50 ms. @throws Error that names `what` at the deadline */
export async function until(look: () => Promise<boolean> | boolean, what: string, ms = PATIENCE_MS): Promise<void> {
  const deadline = Date.now() + ms;
  let last: unknown;
  for (;;) {
    try {
      if (await look()) return;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`waited in vain for ${what}${last instanceof Error ? ` (${last.message})` : ''}`, {
        cause: last,
      });
    await new Promise((wait) => setTimeout(wait, 50));
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((wait) => setTimeout(wait, ms));
