/** Sizes that growth is measured between, in bytes. */
const SMALL = 64 * 1024;
const LARGE = 1024 * 1024;
/**
 * Below this ratio time grows with the input: 16 is linear, 256 quadratic. A table that outgrows the processor's caches
 * takes up to 46 beside busy neighbours.
 */
export const LIMIT = 100;
/** Runs that are measured in any case, and at most: more only while the ratio is not clearly below its limit. */
const RUNS = { least: 2, most: 5 };
/** What takes less than this is not told from the noise of the machine. */
const NOISE_MS = 0.5;

/**
 * How much more processor time (best of some runs) `run` takes for an input of 1 MiB than for one of 64 KiB, made by
 * `make` from the size wanted. The small one is the mean of sixteen in a row whose results are kept: both then fill
 * memory equally, and collecting it costs both the same. What `run` throws is its answer to the input.
 */
export function growthOf<T>(make: (bytes: number) => T, run: (input: T) => unknown): number {
  const large = make(LARGE);
  const small = Array.from({ length: LARGE / SMALL }, () => make(SMALL));
  const best = { small: Infinity, large: Infinity };
  const ratio = () => best.large / Math.max(best.small, NOISE_MS);
  for (let n = 0; n < RUNS.most; n += 1) {
    if (n >= RUNS.least && ratio() < LIMIT / 2) break;
    best.small = Math.min(best.small, cpuMs(run, small) / small.length);
    best.large = Math.min(best.large, cpuMs(run, [large]));
  }
  return ratio();
}

/** `unit` as often as it fits into so many bytes. */
export const filled = (unit: string, bytes: number): string => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));

/** `unit(0),unit(1),…` until there are so many bytes. */
export function counted(bytes: number, unit: (i: number) => string): string {
  const units: string[] = [];
  for (let i = 0, length = 0; length < bytes; i += 1) {
    units.push(unit(i));
    length += units[i]!.length + 1;
  }
  return units.join(',');
}

function cpuMs<T>(run: (input: T) => unknown, inputs: readonly T[]): number {
  const results: unknown[] = [];
  const before = process.cpuUsage();
  for (const input of inputs) {
    try {
      results.push(run(input));
    } catch {
      // Refused: that took its time as well.
    }
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
