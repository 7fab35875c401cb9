import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { join } from 'node:path';
import type { CaseResult } from './comparison';
import { ROOT, rounded, type TrackOptions } from './harness';
import type { Latency } from './loops';

/** A criterion besides the ratios: a latency, a start, an exact count. */
export interface Check {
  name: string;
  value: number;
  /** Upper bound, inclusive. */
  at_most: number;
  met: boolean;
}

export const check = (name: string, value: number, at_most: number): Check => ({
  name,
  value: rounded(value),
  at_most,
  met: value <= at_most,
});

/**
 * Prints the track's table and writes bench/results/<track>.json (not for a smoke run). False when a floor was missed,
 * in a smoke run when a count is wrong.
 */
export function report(
  track: string,
  results: CaseResult[],
  extra: Record<string, unknown> & { checks?: Check[] },
  { smoke }: TrackOptions,
): boolean {
  for (const result of results) {
    console.log(`\n${track}: ${result.name}`);
    const rows = result.measured.map(({ name, median: rate, ...one }) => {
      const ratio = result.ratios.find(({ to }) => to === name);
      return {
        name,
        'per second': Math.round(rate),
        ratio: ratio ? `${ratio.median.toFixed(2)} (${ratio.spread.map((value) => value.toFixed(2)).join('-')})` : '',
        bar: ratio?.floor ? `>= ${ratio.floor} ${ratio.met ? 'met' : 'MISSED'}` : '',
        'by cpu': ratio ? ratio.by_cpu.toFixed(2) : '',
        'client us': Math.round(one.client_cpu_us),
        'engine us': Math.round(one.engine_cpu_us),
        'client core': one.client_saturation.toFixed(2),
        'engine core': one.engine_saturation.toFixed(2),
      };
    });
    console.table(rows);
  }
  const open_loops = (extra.latencies ?? []) as readonly Latency[];
  const failed = open_loops.reduce((sum, one) => sum + one.failed, 0);
  if (open_loops.length > 0) extra.checks = [...(extra.checks ?? []), check('failed in the open loops', failed, 0)];
  if (extra.checks) {
    console.log(`\n${track}: checks`);
    console.table(extra.checks);
  }
  const met =
    results.every(({ ratios }) => ratios.every((ratio) => ratio.met !== false)) &&
    (extra.checks ?? []).every((one) => one.met);
  // scripts/bench.mjs fails when a started track has not come this far, with figures.
  const counted = results.length + (extra.checks?.length ?? 0);
  const figures = results.flatMap(({ measured }) => measured.flatMap(({ rates }) => rates));
  if (counted === 0 || figures.some((rate) => !(rate > 0))) throw new Error(`${track} measured nothing`);
  if (process.env.BENCH_RAN) appendFileSync(process.env.BENCH_RAN, `${track}\n`);
  // A smoke run does not judge speed; exact counts must be exact all the same.
  if (smoke) return (extra.checks ?? []).every((one) => one.met || one.at_most > 0);
  const folder = join(ROOT, 'bench/results');
  mkdirSync(folder, { recursive: true });
  const machine = {
    cores: cpus().length,
    model: cpus()[0]?.model ?? '',
    node: process.version,
    /** Load of 1, 5 and 15 minutes, at the end: other work of the machine. */
    load: loadavg().map(rounded),
  };
  writeFileSync(
    join(folder, `${track}.json`),
    `${JSON.stringify({ track, at: new Date().toISOString(), machine, met, results, ...extra }, null, 2)}\n`,
  );
  return met;
}
