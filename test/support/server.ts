import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { DemoCredentials } from '../../demo/vendor-requests';
import { type TestDatabase, testDatabase } from './database';
import { PATIENCE_MS } from './patience';
import { Printed } from './printed';

/** `<data dir>/dev-credentials.json`; design §9. */
export interface DevCredentials {
  base_url: string;
  ws_url: string;
  metrics_url: string;
  account_id: string;
  user_id: string;
  access_token: string;
  refresh_token: string;
  user_api_key: string;
  system_key: string;
  connections: DemoCredentials['connections'] & { twitch: { platform_channel_id: string } };
  webhook_signing: DemoCredentials['webhook_signing'] & { stripe_secret: string; stripe_connect_secret: string };
  other: { account_id: string; user_id: string; access_token: string };
}

export interface TestServer {
  base_url: string;
  ws_url: string;
  metrics_url: string;
  /** @throws Error in production, where there are none. */
  credentials: DevCredentials;
  data_dir: string;
  /** Its `LUMIO_*` settings, for commands beside it. */
  env: Record<string, string>;
  /** The run's database behind it; undefined when it runs its own PostgreSQL. */
  database: TestDatabase | undefined;
  pid: number;
  /** The last part of what it has printed. */
  output(): string;
  /** All errors that it has printed. */
  readonly printed: Printed;
  /** Resolves with the exit code when it has ended, for whatever reason. */
  ended: Promise<number | null>;
  /** A signal (SIGTERM) and wait; returns the exit code. */
  stop(signal?: 'SIGTERM' | 'SIGINT'): Promise<number | null>;
  /** SIGKILL and wait. */
  kill(): Promise<void>;
  /** The same data, started again (after `stop` or `kill`). */
  restart(changed?: Record<string, string>): Promise<TestServer>;
  /** Stops it when it runs, and removes its data. */
  dispose(): Promise<void>;
}

export interface ServerOptions {
  /** `LUMIO_*` names and values beyond the defaults. */
  env?: Record<string, string>;
  /** Its own PostgreSQL in its data folder instead of a database on the run's. */
  embedded?: boolean;
  /** Runs as this user; the data folder becomes theirs. */
  user?: { uid: number; gid: number };
  /** Node, and the checkout that it runs; without them those of the test. */
  program?: { node: string; root: string };
  /** The data folder; without it a fresh one below the folder for temporary files. */
  data_dir?: string;
}

// This file itself may be the compiled one (the soak runs without jest).
const ROOT = join(__dirname, '../..');
const MAIN = existsSync(join(ROOT, 'dist')) ? 'dist/bin/main.js' : 'bin/main.js';
const OWN_PROGRAM = { node: process.execPath, root: ROOT };

/** Starts the compiled server as a process of its own, the way an operator does, and waits until it serves. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const data_dir = options.data_dir ?? mkdtempSync(join(tmpdir(), 'lumio-server-'));
  if (options.user) chownSync(data_dir, options.user.uid, options.user.gid);
  const database = options.embedded ? undefined : await testDatabase(2);
  const env: Record<string, string> = {
    ...settingsOf(data_dir),
    // A build of before knows no such setting.
    ...(!options.program && { ...PATIENT, ...NO_EMOTES }),
    ...(database && {
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: `test:${randomBytes(32).toString('base64')}`,
    }),
    ...options.env,
  };
  try {
    return await launch(data_dir, database, env, options);
  } catch (error) {
    // Nobody gets a server to dispose of.
    await database?.drop();
    if (!options.data_dir) rmSync(data_dir, { recursive: true, force: true });
    throw error;
  }
}

/**
 * What a test reads after it has written is there, however late the projector of a busy machine is; and what stops in
 * order is not cut off for being slow.
 */
export const PATIENT = { LUMIO_READ_MODELS__WAIT: '30s', LUMIO_STOP_WITHIN: '60s' };

/** A test calls no cloud of others: these addresses are refused. */
const NO_EMOTES = Object.fromEntries(
  ['SEVENTV', 'BTTV', 'FFZ', 'YOUTUBE'].map((of) => [`LUMIO_EMOTES__${of}_URL`, 'http://127.0.0.1:9']),
);

/** Settings of a server on any free ports, with its data in this folder. */
export const settingsOf = (data_dir: string): Record<string, string> => ({
  LUMIO_DATA_DIR: data_dir,
  LUMIO_PORT: '0',
  LUMIO_METRICS__PORT: '0',
  LUMIO_LOG_LEVEL: 'warn',
});

/** The `lumio` command with these arguments and these `LUMIO_*` settings alone. */
export function spawnLumio(
  args: readonly string[],
  env: Record<string, string>,
  { user, program = OWN_PROGRAM }: Pick<ServerOptions, 'user' | 'program'> = {},
): ChildProcessByStdio<null, Readable, Readable> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LUMIO_')));
  return spawn(program.node, ['--enable-source-maps', join(program.root, MAIN), ...args], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...user,
  });
}

/** Runs the `lumio` command to its end. */
export async function runLumio(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawnLumio(args, env);
  const texts = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk: Buffer) => (texts.stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (texts.stderr += chunk.toString()));
  const timer = setTimeout(() => child.kill('SIGKILL'), 120_000);
  const code = await new Promise<number | null>((done) => child.once('close', done));
  clearTimeout(timer);
  return { code, ...texts };
}

async function launch(
  data_dir: string,
  database: TestDatabase | undefined,
  env: Record<string, string>,
  as: Pick<ServerOptions, 'user' | 'program'>,
): Promise<TestServer> {
  const child = spawnLumio(['start'], env, as);
  const printed = new Printed();
  const take = (chunk: Buffer) => printed.take(chunk);
  child.stdout.on('data', take);
  child.stderr.on('data', take);
  const exited = new Promise<number | null>((done) => child.once('exit', done));
  const base_url = await readyUrl(child, () => printed.text());
  const path = join(data_dir, 'dev-credentials.json');
  const credentials = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as DevCredentials) : undefined;
  const server: TestServer = {
    base_url,
    ws_url: `${base_url.replace(/^http/, 'ws')}/v1/ws`,
    metrics_url: credentials?.metrics_url ?? '',
    get credentials() {
      if (!credentials) throw new Error('there are no development credentials here');
      return credentials;
    },
    data_dir,
    env,
    database,
    pid: child.pid!,
    output: () => printed.text(),
    printed,
    ended: exited,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      return exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    restart: (changed = {}) => launch(data_dir, database, { ...env, ...changed }, as),
    async dispose() {
      if (child.exitCode === null && child.signalCode === null) await server.stop();
      await database?.drop();
      rmSync(data_dir, { recursive: true, force: true });
    },
  };
  return server;
}

function readyUrl(child: ChildProcess, output: () => string): Promise<string> {
  return new Promise((ready, fail) => {
    const look = () => {
      const line = /lumio ready at (http:\S+)/.exec(output());
      if (!line) return;
      finish();
      ready(line[1]!);
    };
    const ended = (code: number | null) => {
      finish();
      fail(new Error(`the server ended with code ${code} before it was ready:\n${output()}`));
    };
    const timer = setTimeout(() => {
      finish();
      child.kill('SIGKILL');
      fail(new Error(`the server was not ready within ${2 * PATIENCE_MS} ms:\n${output()}`));
    }, 2 * PATIENCE_MS);
    const finish = () => {
      clearTimeout(timer);
      child.stdout!.off('data', look);
      child.off('exit', ended);
    };
    child.stdout!.on('data', look);
    child.once('exit', ended);
  });
}
