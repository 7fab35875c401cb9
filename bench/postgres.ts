import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../engines/postgres/embedded/server';
import { quiet, type TrackOptions } from './harness';

/** Pins a process and its threads to the system's core; the load generator has the others. */
export function pinToSystemCore(pid: number): void {
  if (cpus().length > 1) execFileSync('taskset', ['-acp', '0', String(pid)], { stdio: 'ignore' });
}

export interface BenchPostgres extends EmbeddedPostgres {
  /** CPU microseconds that its processes have used so far. */
  engineCpu(): number;
  /** Ends the server without waiting for its clients to disconnect. */
  end(): Promise<void>;
}

/**
 * Starts a PostgreSQL with fsync and synchronous_commit on, pinned to the first core; the generator runs on the others.
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

/** Runs a track with a PostgreSQL of its own, which is stopped however the track ends. */
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

/** Waits for closing pools to disconnect: a peer's pool that is cut off meanwhile ends the whole run. */
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

/** CPU microseconds of a process, its running children, and those that it has waited for. */
export function treeCpu(pid: number): number {
  let ticks = 0;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    let stat: string;
    try {
      stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
    } catch {
      continue; // ended between the two reads
    }
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (Number(entry) === pid)
      ticks += Number(fields[11]) + Number(fields[12]) + Number(fields[13]) + Number(fields[14]);
    else if (Number(fields[1]) === pid) ticks += Number(fields[11]) + Number(fields[12]);
  }
  return ticks * 10_000;
}
