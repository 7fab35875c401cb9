import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import pg from 'pg';
import { v7 } from 'uuid';
import { appendHistory } from '../history';
import { ROOT, rounded, type TrackOptions } from '../harness';
import { closedLoop, percentiles, saturation } from '../loops';
import { type BenchPostgres, onPostgres } from '../postgres';
import { check, report } from '../report';
import { HttpLoad } from '../http-load';
import { type Lumio, spawnOnSystemCore, startLumio } from '../system';
import { Traces } from '../traces';
import { subscribers } from '../ws-load';
import { delivery, projected } from './webhook';

/** Concurrent deliveries at the start of the search for the ceiling. */
const UNDER_WAY = 16;
/** Spans are exported each second. */
const EXPORTED_MS = 1500;

/**
 * From the 200 of a signed webhook to its frame at 1,000 subscribers of the account's channel, through record log,
 * projector, outbox and socket of the real server; every frame at every subscriber is counted and timed. Reported with
 * the time of one durable commit on the same PostgreSQL at that moment, and again during a rebuild of the event log.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const lumio = await startLumio(postgres);
  const { account_id } = lumio.credentials;
  const sockets = options.smoke ? 100 : 1000;
  const ms = options.smoke ? 1000 : 8000;
  await appendHistory(lumio.url, lumio.env.LUMIO_SECRETS__KEYS!, [account_id], options.smoke ? 2000 : 100_000);
  await projected(lumio);
  const alone = await watch(lumio, 1);
  const rows = [];
  try {
    await closedLoop(1, 500, () => alone.fly([]));
    for (const rate of [5, 60]) rows.push(await atRate(lumio, rate, ms, 'one socket, nothing else', alone.fly));
  } finally {
    alone.close();
  }
  const { fly, close } = await watch(lumio, sockets);
  try {
    await closedLoop(UNDER_WAY, 500, () => fly([]));
    let flown = 0;
    const from = lumio.cpu() + postgres.engineCpu();
    const ceiling = await saturation(UNDER_WAY, ms, async () => {
      await fly([]);
      flown += 1;
    });
    const cpu_us = (lumio.cpu() + postgres.engineCpu() - from) / (flown * sockets);
    for (const share of [0.25, 0.5, 0.75])
      rows.push(await atRate(lumio, ceiling * share, ms, `${share} of the ceiling`, fly));
    const rebuilt = await whileRebuilding(lumio, () => atRate(lumio, ceiling * 0.5, ms, '0.5, while rebuilding', fly));
    rows.push(rebuilt.row);
    console.log(
      `\nend-to-end: ${sockets} subscribers, ceiling ${rounded(ceiling)} events a second, ${rounded(cpu_us)} us of CPU a delivery`,
    );
    console.table(rows);
    const stages = await traced(postgres, sockets, [60, ceiling * 0.5], ms);
    const [, sixty, , half] = rows;
    const checks = [
      check('p50 with one socket at 60 a second, ms', sixty!.p50_ms, 5),
      check('p50 at half load, ms', half!.p50_ms, 10),
      check('p99 at half load, ms', half!.p99_ms, 50),
      check('p99 at half load while rebuilding, ms', rebuilt.row.p99_ms, 250),
    ];
    return report(
      'end-to-end',
      [],
      { sockets, ceiling, cpu_us_per_delivery: cpu_us, rows, stages, rebuild: rebuilt.output, checks },
      options,
    );
  } finally {
    close();
    await lumio.stop();
  }
}

/** Subscribers of the account's channel, and deliveries whose frames are timed at each of them. */
async function watch(lumio: Lumio, sockets: number) {
  const { account_id, system_key, webhook_signing, connections } = lumio.credentials;
  const flights = new Map<string, Flight>();
  const onText = (frame: Buffer) => {
    const at = frame.indexOf('"trovo:e2e-');
    if (at === -1) return;
    const flight = flights.get(frame.toString('latin1', at + 7, at + 7 + ID_LENGTH));
    flight?.arrived();
  };
  const headers = { authorization: `Bearer ${system_key}`, 'x-lumio-account': account_id };
  const clients = await subscribers(lumio.base_url, sockets, headers, `events:${account_id}`, onText);
  const load = await HttpLoad.open(lumio.base_url, 64);
  const fly = async (times: number[]) => {
    const id = `e2e-${v7()}`;
    const flight = new Flight(sockets);
    flights.set(id, flight);
    const { status } = await load.request(
      delivery(webhook_signing.trovo_secret, connections.trovo.platform_channel_id, id),
    );
    const accepted = performance.now();
    if (status !== 200) throw new Error(`the webhook answered ${status}`);
    await flight.landed;
    flights.delete(id);
    // A frame may arrive before the answer: that counts as zero.
    for (const at of flight.times) times.push(Math.max(0, at - accepted));
  };
  const close = () => {
    clients.close();
    load.close();
  };
  return { fly, close };
}

/**
 * Repeats the measurement on a server that traces every delivery: one socket at 60 a second, then all of them at half
 * load.
 */
async function traced(postgres: BenchPostgres, sockets: number, [slow, half]: [number, number], ms: number) {
  const traces = await Traces.open();
  const lumio = await startLumio(postgres, 'lumio_traced', { LUMIO_TRACING__OTLP_URL: traces.url });
  const tables: Record<string, ReturnType<Traces['stages']>> = {};
  try {
    for (const [count, rate] of [
      [1, slow],
      [sockets, half],
    ] as const) {
      const { fly, close } = await watch(lumio, count);
      try {
        await closedLoop(1, 500, () => fly([]));
        await sleep(EXPORTED_MS);
        traces.clear();
        await atRate(lumio, rate, ms, '', fly);
        await sleep(EXPORTED_MS);
      } finally {
        close();
      }
      const name = `${count} sockets, ${rounded(rate)} deliveries a second`;
      tables[name] = traces.stages();
      console.log(`\nend-to-end: where each millisecond goes, by the server's own traces: ${name}`);
      console.table(tables[name]);
    }
  } finally {
    await lumio.stop();
    traces.close();
  }
  return tables;
}

const ID_LENGTH = 'e2e-'.length + 36;

/** A delivery and its frames. */
class Flight {
  readonly times: number[] = [];
  readonly landed: Promise<void>;
  private land: () => void = () => undefined;

  constructor(private readonly wanted: number) {
    this.landed = new Promise((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`${this.times.length} of ${wanted} frames came within 30 s`)),
        30_000,
      );
      this.land = () => {
        clearTimeout(late);
        resolve();
      };
    });
  }

  arrived(): void {
    if (this.times.push(performance.now()) === this.wanted) this.land();
  }
}

async function atRate(
  lumio: Lumio,
  rate: number,
  ms: number,
  load: string,
  fly: (times: number[]) => Promise<void>,
): Promise<{
  load: string;
  rate: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
  commit_p50_ms: number;
  commit_p99_ms: number;
}> {
  const times: number[] = [];
  const flying: Promise<void>[] = [];
  const commits = await besideCommits(lumio, async () => {
    const start = performance.now();
    for (let n = 0; n < Math.max(3, (rate * ms) / 1000); n += 1) {
      const wait = start + (n * 1000) / rate - performance.now();
      if (wait > 0) await sleep(wait);
      flying.push(fly(times));
    }
    await Promise.all(flying);
  });
  return {
    load,
    rate: rounded(rate),
    ...percentiles(times),
    commit_p50_ms: commits.p50_ms,
    commit_p99_ms: commits.p99_ms,
  };
}

/** Commits a row every 25 ms during the work, each timed. */
async function besideCommits(lumio: Lumio, work: () => Promise<void>) {
  const client = new pg.Client({ connectionString: lumio.url });
  await client.connect();
  await client.query('create table if not exists bench_commits (at timestamptz not null)');
  const times: number[] = [];
  let running = true;
  const committing = (async () => {
    while (running) {
      const from = performance.now();
      await client.query('insert into bench_commits values (now())');
      times.push(performance.now() - from);
      await sleep(25);
    }
  })();
  try {
    await work();
  } finally {
    running = false;
    await committing;
    await client.end();
  }
  return percentiles(times);
}

/** Repeats `lumio rebuild event-log` until the work is done. */
async function whileRebuilding<T>(lumio: Lumio, work: () => Promise<T>): Promise<{ row: T; output: string }> {
  let running = true;
  const rebuilding = (async () => {
    let times = 0;
    while (running) {
      const output = join(lumio.data_dir, 'rebuild.log');
      const child = spawnOnSystemCore(
        join(ROOT, 'dist/bin/main.js'),
        ['rebuild', 'event-log', '--quiet'],
        lumio.env,
        output,
      );
      const code = await new Promise((done) => child.once('exit', done));
      if (code !== 0) throw new Error(`the rebuild ended with code ${String(code)}`);
      times += 1;
    }
    return `${times} rebuilds`;
  })();
  rebuilding.catch(() => undefined); // met when it is awaited
  const row = await work();
  running = false;
  return { row, output: await rebuilding };
}
