import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../history';
import { ROOT, rounded, type TrackOptions } from '../harness';
import { type BenchPostgres, onPostgres } from '../postgres';
import { PLAIN_WS, Receivers, SOCKET_IO, type Wire } from '../receivers';
import { check, report } from '../report';
import { keys, type Lumio, type Program, startLumio, startPeer } from '../system';
import { lumioClients } from '../ws-load';

interface Idle {
  /** Bytes of resident memory per additional connection, after collections, without V8's space for new objects. */
  rss: number;
  /** Bytes of the heap and its external memory per additional connection. */
  used: number;
  /** Share of a core while nothing is published. */
  core: number;
}

/**
 * Cost of an idle connection: memory after a garbage collection, and CPU. Ours are authenticated with a key of their
 * own each, subscribed, and revalidated every 30 s; plain `ws` and Socket.IO have only accepted theirs.
 */
export const run = onPostgres(measure);

async function measure(postgres: BenchPostgres, options: TrackOptions): Promise<boolean> {
  const [few, many, ms] = options.smoke ? [20, 100, 500] : [1_000, 10_000, 60_000];
  const rows: Record<string, Idle> = {};
  const folder = mkdtempSync(join(tmpdir(), 'lumio-bench-idle-'));
  const hook = (name: string) => ({
    NODE_OPTIONS: `--require ${join(ROOT, 'dist/bench/peers/memory-hook.js')}`,
    BENCH_MEMORY_FILE: join(folder, name),
    BENCH_GIVEN_BACK_MS: options.smoke ? '10' : '500',
  });
  let statements: Record<string, number> = {};
  try {
    for (const [name, wire] of [
      ['fanout-ws', PLAIN_WS],
      ['fanout-socketio', SOCKET_IO],
    ] as const) {
      const peer = await startPeer(name, [], hook(name));
      try {
        rows[name] = await idle(peer, join(folder, name), wire, Array(many).fill(''), few, ms);
      } finally {
        await peer.stop();
      }
    }
    const lumio = await startLumio(postgres, 'lumio_idle', hook('lumio'));
    try {
      const asked = await askedBy(lumio);
      const tokens = (await keys(lumio, many)).map((key) => `authorization: Bearer ${key}`);
      const { path, ...dialect } = { path: '/v1/ws', ...lumioClients(`events:${lumio.credentials.account_id}`) };
      let opened = 0;
      const onOpen = async () => void (opened = await asked());
      rows.lumio = await idle(lumio, join(folder, 'lumio'), { path, ...dialect }, tokens, few, ms, onOpen);
      statements = { opening: opened, idle_a_second: rounded(((await asked()) - opened) / (ms / 1_000)) };
    } finally {
      await lumio.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`\nidle: ${many} connections; bytes each, share of a core`);
  console.table(rows);
  console.log('idle: transactions of the database', statements);
  const plain = rows['fanout-ws']!;
  const checks = [
    check("memory of an idle connection over plain ws's", rows.lumio!.rss / plain.rss, 1.5),
    check("memory of an idle connection over Socket.IO's", rows.lumio!.rss / rows['fanout-socketio']!.rss, 0.6),
    check('the same of the heap', rows.lumio!.used / plain.used, options.smoke ? 100 : 2),
  ];
  return report('idle', [], { connections: many, rows, statements, checks }, options);
}

/**
 * Opens few connections and then all: the difference belongs to the connections alone. As many are opened and closed
 * first, so that one-time costs are not counted.
 */
async function idle(
  program: Program,
  file: string,
  wire: Wire,
  headers: readonly string[],
  few: number,
  ms: number,
  onOpen: () => Promise<void> = async () => undefined,
): Promise<Idle> {
  const open = (from: number, to: number) => Receivers.open(program.base_url, to - from, wire, headers.slice(from, to));
  (await open(0, few)).close();
  const first = await open(0, few);
  const before = await memory(program, file);
  const rest = await open(few, headers.length);
  try {
    await onOpen();
    const used = program.cpu();
    await sleep(ms);
    const core = (program.cpu() - used) / (ms * 1_000);
    const after = await memory(program, file);
    const each = (name: 'rss' | 'used') => Math.round((after[name] - before[name]) / (headers.length - few));
    return { rss: each('rss'), used: each('used'), core: rounded(core) };
  } finally {
    first.close();
    rest.close();
  }
}

async function memory({ pid }: Program, file: string): Promise<{ rss: number; used: number }> {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  for (const deadline = Date.now() + 30_000; ; await sleep(50)) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (text.endsWith('}')) return JSON.parse(text) as { rss: number; used: number };
    if (Date.now() > deadline) throw new Error('the program did not say how much memory it uses');
  }
}

/** Counts transactions of the program's database from now on. */
async function askedBy({ url }: Lumio): Promise<() => Promise<number>> {
  const total = async () => {
    await sleep(1_500); // an idle backend publishes its figures within a second
    const sql = 'select xact_commit::int as n from pg_stat_database where datname = current_database()';
    return (await ask<{ n: number }>(url, sql))[0]!.n;
  };
  const from = await total();
  return async () => (await total()) - from;
}
