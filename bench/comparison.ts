import { median } from './harness';

/** A measured way of doing the work. */
export interface Contender {
  name: string;
  /**
   * Does the work for `ms` milliseconds (or a fixed amount of it) and checks its answers; returns the units done. An
   * exception fails the track.
   */
  run(ms: number): Promise<number | Work>;
  /** CPU microseconds that its own program has used so far, charged to this contender alone. */
  cpu?(): number;
  /** Completes the work that the run left; its CPU counts, its time does not. */
  finish?(): Promise<void>;
}

/** Units, and the counted part of the run, without table creation and reading answers back. */
export interface Work {
  units: number;
  seconds: number;
  client_us: number;
  engine_us: number;
}

export interface Measured {
  name: string;
  /** Units per second, by round. */
  rates: number[];
  median: number;
  /** Microseconds of CPU per unit: the generator with our adapter in it, and the engine. */
  client_cpu_us: number;
  engine_cpu_us: number;
  /** Shares of one core. Both below 0.9: not CPU but waiting was the limit (fsync, the link, a shared machine). */
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
   * Ratio by CPU: the other's microseconds per unit over ours. A shared machine affects rates much more than this
   * ratio.
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
  /** Lowest sufficient ratio subject/peer, by peer; peers without one are only reported. */
  floors: Readonly<Record<string, number>>;
  rounds: number;
  ms: number;
  /** CPU microseconds that the engine has used so far. */
  engineCpu(): number;
  /** CPU that counts: the adapter runs in the client (default), or the client is only a load generator. */
  cpu_of?: 'client and engine' | 'engine';
}

/** Runs the contenders interleaved (A-B-A-B), so that fluctuations of the machine affect all of them. */
export async function compare(options: CaseOptions): Promise<CaseResult> {
  const taken = options.contenders.map(() => ({ rates: [] as number[], units: 0, client: 0, engine: 0, seconds: 0 }));
  for (const { run, finish } of options.contenders) {
    await run(Math.min(options.ms, 300));
    await finish?.();
  }
  for (let round = 0; round < options.rounds; round += 1) {
    for (const [index, contender] of options.contenders.entries()) {
      const into = taken[index]!;
      const engineCpu = () => options.engineCpu() + (contender.cpu?.() ?? 0);
      const [client, engine, start] = [process.cpuUsage(), engineCpu(), process.hrtime.bigint()];
      const done = await contender.run(options.ms);
      const used = process.cpuUsage(client);
      const seconds = Number(process.hrtime.bigint() - start) / 1e9;
      await contender.finish?.();
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

/** Times a fixed piece of work, for {@link Contender}s that prepare and check outside of it. */
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
