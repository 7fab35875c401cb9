import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from '../../log/port';
import { findBinaries, type PostgresBinaries } from './binaries';
import { ownerFor, runAs } from './run-as';

export interface EmbeddedOptions {
  /** The cluster lives in `<data_dir>/postgres`. */
  data_dir: string;
  log: Logger;
  /** Server settings beyond ours, `name=value`. */
  settings?: readonly string[];
  /** Called when the server ended unexpectedly. */
  onExit?: (reason: string) => void;
}

/** A PostgreSQL server that this process runs. */
export interface EmbeddedPostgres {
  /** Connection string of its database `lumio`, over a Unix socket that only this user reaches. */
  url: string;
  pid: number;
  /** Fast shutdown: open transactions roll back, everything committed is on disk. */
  stop(): Promise<void>;
}

const USER = 'lumio';
/** Longest folder of a socket: the kernel bounds the path at 108 bytes, with the file name that PostgreSQL appends. */
const LONGEST_SOCKET_FOLDER = 80;

const SETTINGS = [
  'listen_addresses=',
  'max_connections=120',
  'shared_buffers=256MB',
  'max_wal_size=2GB',
  'checkpoint_timeout=15min',
  'checkpoint_completion_target=0.9',
  'jit=off',
  'timezone=UTC',
  'log_timezone=UTC',
  'log_min_messages=warning',
];

/**
 * Starts PostgreSQL on `<data_dir>/postgres`, making the cluster at the first start, and waits until it answers.
 * A server that an earlier process left behind (killed, not stopped) is shut down first.
 * @throws Error in one clear line: wrong major version, no rights, no binaries
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const data_dir = resolve(options.data_dir);
  const cluster = join(data_dir, 'postgres');
  mkdirSync(data_dir, { recursive: true });
  const binaries = findBinaries();
  const as = runAs([cluster, binaries.postgres]);
  if (!existsSync(join(cluster, 'PG_VERSION'))) await createCluster(binaries, cluster, options.log);
  await checkVersion(binaries, cluster);
  await stopLeftOver(cluster, options.log);

  const socket_dir = socketFolder(cluster);
  const args = ['-D', cluster, '-k', socket_dir];
  for (const setting of [...SETTINGS, ...(options.settings ?? [])]) args.push('-c', setting);
  const command = [...as.prefix, binaries.postgres, ...args];
  // A session of its own, because a terminal's Ctrl-C must reach only this process, which drains before the database
  // ends.
  const server = spawn(command[0]!, command.slice(1), {
    uid: as.uid,
    gid: as.gid,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, LC_ALL: 'C' },
  });
  const tail = collectOutput(server, options.log);
  let stopping = false;
  const exited = new Promise<void>((done) => {
    server.once('exit', (code, signal) => {
      // A socket folder outside the data folder is only needed while the server runs.
      if (socket_dir !== cluster) rmSync(socket_dir, { recursive: true, force: true });
      if (!stopping) options.onExit?.(`PostgreSQL ended (${signal ?? `code ${code}`}): ${tail()}`);
      done();
    });
  });
  const url = `postgresql://${USER}@localhost/${USER}?host=${encodeURIComponent(socket_dir)}`;
  await waitUntilReady(socket_dir, server, tail);
  return {
    url,
    pid: server.pid!,
    async stop() {
      stopping = true;
      if (server.exitCode !== null || server.signalCode !== null) return;
      server.kill('SIGINT');
      const late = setTimeout(() => server.kill('SIGQUIT'), 15_000);
      await exited;
      clearTimeout(late);
    },
  };
}

async function createCluster(binaries: PostgresBinaries, cluster: string, log: Logger): Promise<void> {
  // Created under another name and renamed when complete, so that a crash leaves no incomplete cluster.
  const fresh = `${cluster}.new`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true, mode: 0o700 });
  const owner = ownerFor();
  if (owner) chownSync(fresh, owner.uid, owner.gid);
  const as = runAs([fresh, binaries.initdb]);
  log.info({ cluster }, 'creating the database cluster');
  const command = [...as.prefix, binaries.initdb, '-D', fresh, '-U', USER, '--auth=trust', '--encoding=UTF8'];
  command.push('--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions');
  const initdb = spawn(command[0]!, command.slice(1), {
    uid: as.uid,
    gid: as.gid,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, LC_ALL: 'C', LANG: 'C' },
  });
  const tail = collectOutput(initdb, log);
  const code = await new Promise<number | null>((done, fail) => initdb.once('error', fail).once('exit', done));
  if (code !== 0) throw new Error(`initdb failed (code ${code}): ${tail()}`);
  renameSync(fresh, cluster);
}

async function checkVersion(binaries: PostgresBinaries, cluster: string): Promise<void> {
  const found = readFileSync(join(cluster, 'PG_VERSION'), 'utf8').trim();
  const version = spawn(binaries.postgres, ['--version'], { cwd: '/', stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  version.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  await new Promise((done) => version.once('close', done));
  const ours = /(\d+)(?:\.|beta|devel|rc|$)/.exec(text)?.[1];
  if (ours !== found) {
    throw new Error(
      `the data folder holds a PostgreSQL ${found} cluster and this is PostgreSQL ${ours}: restore a backup into a new folder (docs/operating)`,
    );
  }
}

/** Shuts down a server that still holds the cluster because its parent was killed. */
async function stopLeftOver(cluster: string, log: Logger): Promise<void> {
  const pid = runningPostmaster(cluster);
  if (pid === undefined) return;
  log.warn({ pid }, 'shutting down a database server that an earlier process left behind');
  process.kill(pid, 'SIGINT');
  for (let waited = 0; runningPostmaster(cluster) !== undefined; waited += 50) {
    if (waited === 10_000) process.kill(pid, 'SIGQUIT');
    if (waited > 20_000) throw new Error(`the database server ${pid} that holds ${cluster} does not stop`);
    await sleep(50);
  }
}

/** Pid of the live server of this cluster, or undefined. */
export function runningPostmaster(cluster: string): number | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const pid = Number(lines[0]);
  try {
    process.kill(pid, 0);
    // The pid may belong to another program by now.
    return /postgres/.test(readFileSync(`/proc/${pid}/comm`, 'utf8')) ? pid : undefined;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ESRCH') return undefined;
    // Without /proc the program of a live pid is unknown.
    if (code === 'ENOENT') return existsSync('/proc/self') ? undefined : pid;
    throw error;
  }
}

/** Connection string of a server that already runs on this data folder, or undefined. */
export function runningUrl(data_dir: string): string | undefined {
  const cluster = join(resolve(data_dir), 'postgres');
  if (runningPostmaster(cluster) === undefined) return undefined;
  return `postgresql://${USER}@localhost/${USER}?host=${encodeURIComponent(socketFolder(cluster))}`;
}

function socketFolder(cluster: string): string {
  if (cluster.length <= LONGEST_SOCKET_FOLDER) return cluster;
  const folder = join(tmpdir(), `lumio-${createHash('sha256').update(cluster).digest('hex').slice(0, 16)}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const owner = ownerFor();
  if (owner) chownSync(folder, owner.uid, owner.gid);
  chmodSync(folder, 0o700);
  return folder;
}

async function waitUntilReady(host: string, server: ChildProcess, tail: () => string): Promise<void> {
  let last: unknown;
  for (let waited = 0; waited < 60_000; waited += 50) {
    if (server.exitCode !== null || server.signalCode !== null) throw new Error(`PostgreSQL did not start: ${tail()}`);
    const client = new pg.Client({ host, user: USER, database: 'postgres' });
    try {
      await client.connect();
      const { rowCount } = await client.query('select from pg_database where datname = $1', [USER]);
      if (rowCount === 0) await client.query(`create database ${USER}`);
      await client.end();
      return;
    } catch (error) {
      last = error;
      await client.end();
      await sleep(50);
    }
  }
  server.kill('SIGQUIT');
  throw new Error(`PostgreSQL did not answer within 60 s: ${tail()}`, { cause: last });
}

/** Passes the program's lines to the log and keeps the last ones for an error message. */
function collectOutput(program: ChildProcess, log: Logger): () => string {
  const lines: string[] = [];
  const take = (chunk: Buffer) => {
    for (const line of chunk.toString().split('\n').filter(Boolean)) {
      lines.push(line);
      if (lines.length > 20) lines.shift();
      log.debug({ line }, 'postgres');
    }
  };
  program.stdout?.on('data', take);
  program.stderr?.on('data', take);
  program.once('error', (error) => lines.push(String(error)));
  return () => lines.slice(-5).join(' | ');
}
