import { rounded } from './harness';

/** Runs `writers` loops that each start their next unit when the last one is done. */
export async function closedLoop(
  writers: number,
  ms: number,
  unit: (writer: number, n: number) => Promise<void>,
): Promise<number> {
  const end = Date.now() + ms;
  let done = 0;
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let n = 0; Date.now() < end; n += 1) {
        await unit(writer, n);
        done += 1;
      }
    }),
  );
  return done;
}

/**
 * Returns the highest rate of a closed loop, units per second: doubles the concurrency at each step, until that gains
 * less than a twentieth.
 */
export async function saturation(first: number, ms: number, unit: () => Promise<void>): Promise<number> {
  let best = 0;
  for (let under_way = first; ; under_way *= 2) {
    const from = performance.now();
    // Units in progress at the end are awaited, which takes longer with more of them.
    const rate = ((await closedLoop(under_way, ms, unit)) * 1000) / (performance.now() - from);
    if (rate < best * 1.05) return Math.max(rate, best);
    best = rate;
  }
}

/** Works through a list, `parallel` at a time. */
export async function forEach<T>(
  list: readonly T[],
  parallel: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < list.length) await work(list[next++]!);
  };
  await Promise.all(Array.from({ length: parallel }, lane));
}

export interface Latency {
  /** Intended units per second. */
  rate: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  /** Units that failed or were not done in {@link LATE_MS}: each counts with that time. */
  failed: number;
}

const LATE_MS = 30_000;

/** Starts units at a fixed rate regardless of the answers; each is timed from its intended start, done or not. */
export async function openLoop(rate: number, ms: number, unit: (n: number) => Promise<void>): Promise<Latency> {
  const start = performance.now();
  const total = Math.max(1, Math.floor((rate * ms) / 1000));
  const taken: number[] = [];
  const running: Promise<void>[] = [];
  let failed = 0;
  for (let n = 0; n < total;) {
    const due = Math.min(total, Math.floor(((performance.now() - start) * rate) / 1000) + 1);
    for (; n < due; n += 1) {
      const intended = start + (n * 1000) / rate;
      running.push(
        inTime(unit(n)).then((done) => {
          if (!done) failed += 1;
          taken.push(done ? performance.now() - intended : LATE_MS);
        }),
      );
    }
    await new Promise((resume) => setTimeout(resume, 1));
  }
  await Promise.all(running);
  return { rate: rounded(rate), ...percentiles(taken), failed };
}

async function inTime(unit: Promise<void>): Promise<boolean> {
  let late: NodeJS.Timeout | undefined;
  const given_up = new Promise<boolean>((resolve) => (late = setTimeout(() => resolve(false), LATE_MS)));
  const done = unit.then(
    () => true,
    () => false,
  );
  try {
    return await Promise.race([done, given_up]);
  } finally {
    clearTimeout(late);
  }
}

/** Sorts its argument in place. */
export function percentiles(taken: number[]): Omit<Latency, 'rate' | 'failed'> {
  taken.sort((a, b) => a - b);
  const at = (share: number) => rounded(taken[Math.min(taken.length - 1, Math.floor(taken.length * share))] ?? NaN);
  return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}
