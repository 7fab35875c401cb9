import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../engines/postgres/embedded';
import type { Logger } from '../engines/log/port';

/** The project's folder; compiled files lie in dist/bench. */
export const ROOT = existsSync(join(__dirname, '../package.json'))
  ? resolve(__dirname, '..')
  : resolve(__dirname, '../..');

export interface TrackOptions {
  /** Seconds instead of minutes: proves that the track runs, not how fast. */
  smoke: boolean;
}

/** A package that only benchmarks use, from bench/node_modules. */
export function peer<T>(name: string): T {
  return createRequire(join(ROOT, 'bench/package.json'))(name) as T;
}

/** Where a peer's files lie. */
export const peerFolder = (name: string): string => join(ROOT, 'bench/node_modules', name);

/** One measured way of doing the work. */
export interface Contender {
  name: string;
  /**
   * Does the work for `ms` milliseconds (or a fixed amount of it) and checks its answers; units of work done. A throw
   * fails the track.
   */
  run(ms: number): Promise<number | Work>;
  /** CPU microseconds that its own program has used so far: they are charged to nobody else. */
  cpu?(): number;
  /** Ends what the run left to do; its CPU is the contender's, its time is not. */
  settle?(): Promise<void>;
}

/** Units, and the part of the run that counts: laying out tables and reading answers back does not. */
export interface Work {
  units: number;
  seconds: number;
  client_us: number;
  engine_us: number;
}

export interface Measured {
  name: string;
  /** Units a second, round by round. */
  rates: number[];
  median: number;
  /** Microseconds of CPU per unit: the generator with our adapter in it, and the engine. */
  client_cpu_us: number;
  engine_cpu_us: number;
  /**
   * Shares of one core. Both below 0.9: neither was the limit, but waiting was (fsync, the link, a machine shared with
   * others).
   */
  client_saturation: number;
  engine_saturation: number;
}

export interface Ratio {
  of: string;
  to: string;
  median: number;
  /** Lowest and highest of the rounds' ratios. */
  spread: [number, number];
  /**
   * The same by CPU: the other's microseconds per unit over ours. A shared machine blurs rates, it hardly moves this
   * one.
   */
  by_cpu: number;
  floor: number | null;
  met: boolean | null;
}

export interface CaseResult {
  name: string;
  measured: Measured[];
  ratios: Ratio[];
}

export interface CaseOptions {
  name: string;
  contenders: Contender[];
  /** Contender that the others are compared with. */
  subject: string;
  /** Peer to the lowest ratio subject/peer that is good enough; peers without one are shown only. */
  floors: Readonly<Record<string, number>>;
  rounds: number;
  ms: number;
  /** CPU microseconds that the engine has used so far. */
  engineCpu(): number;
  /** Whose CPU is the work's: the adapter runs in the client (default), or the client is only a load generator. */
  cpu_of?: 'client and engine' | 'engine';
}

/** Runs the contenders interleaved (A-B-A-B), so that a machine's mood meets all of them. */
export async function compare(options: CaseOptions): Promise<CaseResult> {
  const taken = options.contenders.map(() => ({ rates: [] as number[], units: 0, client: 0, engine: 0, seconds: 0 }));
  for (const { run, settle } of options.contenders) {
    await run(Math.min(options.ms, 300));
    await settle?.();
  }
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [index, contender] of options.contenders.entries()) {
      const into = taken[index]!;
      const engineCpu = () => options.engineCpu() + (contender.cpu?.() ?? 0);
      const [client, engine, start] = [process.cpuUsage(), engineCpu(), process.hrtime.bigint()];
      const done = await contender.run(options.ms);
      const used = process.cpuUsage(client);
      const seconds = Number(process.hrtime.bigint() - start) / 1e9;
      await contender.settle?.();
      const work: Work =
        typeof done === 'object'
          ? done
          : {
              units: done,
              seconds,
              client_us: used.user + used.system,
              engine_us: engineCpu() - engine,
            };
      into.rates.push(work.units / work.seconds);
      into.units += work.units;
      into.seconds += work.seconds;
      into.client += work.client_us;
      into.engine += work.engine_us;
    }
  }
  const measured = taken.map(({ rates, units, client, engine, seconds }, index) => ({
    name: options.contenders[index]!.name,
    rates,
    median: median(rates),
    client_cpu_us: client / units,
    engine_cpu_us: engine / units,
    client_saturation: client / (seconds * 1e6),
    engine_saturation: engine / (seconds * 1e6),
  }));
  const cpu = ({ client_cpu_us, engine_cpu_us }: Measured) =>
    engine_cpu_us + (options.cpu_of === 'engine' ? 0 : client_cpu_us);
  const subject = measured.find(({ name }) => name === options.subject)!;
  const ratios = measured
    .filter((other) => other !== subject)
    .map((other): Ratio => {
      const rounds = subject.rates.map((rate, round) => rate / other.rates[round]!);
      const floor = options.floors[other.name] ?? null;
      return {
        of: subject.name,
        to: other.name,
        median: median(rounds),
        spread: [Math.min(...rounds), Math.max(...rounds)],
        by_cpu: cpu(other) / cpu(subject),
        floor,
        met: floor === null ? null : median(rounds) >= floor,
      };
    });
  return { name: options.name, measured, ratios };
}

/** `writers` loops that each start their next unit when the last one is done. */
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
 * The highest rate that a closed loop reaches, units a second: twice as many are under way at each step, until that
 * gains less than a twentieth.
 */
export async function saturation(first: number, ms: number, unit: () => Promise<void>): Promise<number> {
  let best = 0;
  for (let under_way = first; ; under_way *= 2) {
    const rate = ((await closedLoop(under_way, ms, unit)) * 1000) / ms;
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
  /** Units a second that were intended. */
  rate: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  /** Units that failed or were not done in {@link LATE_MS}: each counts as that long. */
  failed: number;
}

const LATE_MS = 30_000;

/**
 * Starts units at a fixed rate whatever the answers do; each is timed from when it should have started, done or not.
 */
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

/** Sorts what it is given. */
export function percentiles(taken: number[]): Omit<Latency, 'rate' | 'failed'> {
  taken.sort((a, b) => a - b);
  const at = (share: number) => rounded(taken[Math.min(taken.length - 1, Math.floor(taken.length * share))] ?? NaN);
  return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}

/** Times one piece of fixed work, for {@link Contender}s that prepare and check outside of it. */
export async function timed(engineCpu: () => number, work: () => Promise<number>): Promise<Work> {
  const [client, engine, start] = [process.cpuUsage(), engineCpu(), process.hrtime.bigint()];
  const units = await work();
  const used = process.cpuUsage(client);
  return {
    units,
    seconds: Number(process.hrtime.bigint() - start) / 1e9,
    client_us: used.user + used.system,
    engine_us: engineCpu() - engine,
  };
}

export const rounded = (value: number): number => Math.round(value * 100) / 100;

export const median = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export const quiet: Logger = { debug() {}, info() {}, warn() {}, error: console.error, child: () => quiet };

/** Keeps a process and its threads to the system's core; the load generator has the others. */
export function pinToSystemCore(pid: number): void {
  if (cpus().length > 1) execFileSync('taskset', ['-acp', '0', String(pid)], { stdio: 'ignore' });
}

export interface BenchPostgres extends EmbeddedPostgres {
  /** CPU microseconds that its processes have used so far. */
  engineCpu(): number;
  /** Ends it without waiting for its clients to leave. */
  end(): Promise<void>;
}

/**
 * A PostgreSQL of its own with fsync and synchronous_commit on, kept to the first core; the generator is started on the
 * others.
 */
async function benchPostgres(): Promise<BenchPostgres> {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-bench-'));
  const settings = ['fsync=on', 'synchronous_commit=on', 'max_connections=300'];
  const postgres = await startEmbeddedPostgres({ data_dir, log: quiet, settings });
  pinToSystemCore(postgres.pid);
  const end = async () => {
    await postgres.stop();
    rmSync(data_dir, { recursive: true, force: true });
  };
  return {
    ...postgres,
    engineCpu: () => treeCpu(postgres.pid),
    end,
    async stop() {
      await deserted(postgres.url);
      await end();
    },
  };
}

/** A track with a PostgreSQL of its own, which ends with it however it ends. */
export function onPostgres(measure: (postgres: BenchPostgres, options: TrackOptions) => Promise<boolean>) {
  return async (options: TrackOptions): Promise<boolean> => {
    const postgres = await benchPostgres();
    const interrupted = (signal: NodeJS.Signals) => {
      console.error(`bench: ended by ${signal}`);
      void postgres.end().finally(() => process.exit(1));
    };
    process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
    try {
      return await measure(postgres, options);
    } finally {
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
      await postgres.stop();
    }
  };
}

/**
 * Pools that are closed may still be saying goodbye, and a peer's pool that is cut off while it does ends the whole
 * run.
 */
async function deserted(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const others = `select count(*)::int as n from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  for (const deadline = Date.now() + 5000; Date.now() < deadline; await sleep(20)) {
    const { rows } = await client.query<{ n: number }>(others);
    if (rows[0]!.n === 0) break;
  }
  await client.end();
}

/** CPU microseconds of a process, its living children, and those that it has waited for. */
export function treeCpu(pid: number): number {
  let ticks = 0;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    let stat: string;
    try {
      stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
    } catch {
      continue; // ended between the two looks
    }
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(entry) === pid)
      ticks += Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14]);
    else if (Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * 10_000;
}

/** A promise beside the ratios: a latency, a start, an exact count. */
export interface Check {
  name: string;
  value: number;
  /** `<=` this. */
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
  // scripts/bench.mjs fails when a track that it started has not come this far, with figures.
  const counted = results.length + (extra.checks?.length ?? 0);
  const figures = results.flatMap(({ measured }) => measured.flatMap(({ rates }) => rates));
  if (counted === 0 || figures.some((rate) => !(rate > 0))) throw new Error(`${track} measured nothing`);
  if (process.env.BENCH_RAN) appendFileSync(process.env.BENCH_RAN, `${track}\n`);
  // A smoke run is not about speed; what must be exact must be exact all the same.
  if (smoke) return (extra.checks ?? []).every((one) => one.met || one.at_most > 0);
  const folder = join(ROOT, 'bench/results');
  mkdirSync(folder, { recursive: true });
  const machine = {
    cores: cpus().length,
    model: cpus()[0]?.model ?? '',
    node: process.version,
    /** Of 1, 5 and 15 minutes, at the end: what else the machine was doing. */
    load: loadavg().map(rounded),
  };
  writeFileSync(
    join(folder, `${track}.json`),
    `${JSON.stringify({ track, at: new Date().toISOString(), machine, met, results, ...extra }, null, 2)}\n`,
  );
  return met;
}
