import { type ChildProcess, spawn } from 'node:child_process';
import { appendFileSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATIENCE_MS } from '../../support/patience';

/** Where scripts/engines/install.mjs puts the engines. */
export const ENGINES = process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines');

/** A program of an engine. @throws Error with what to run when it is not there */
export function program(...path: string[]): string {
  const file = join(ENGINES, ...path);
  if (!existsSync(file)) throw new Error(`${file} is not there: run npm run test:engines, which installs it`);
  return file;
}

/** An engine as a process of the test. */
export interface Engine {
  /** As the settings take it. */
  readonly url: string;
  /** Changes with a restart. */
  readonly pid: number;
  /** SIGKILL and wait. */
  kill(): Promise<void>;
  /** SIGTERM and wait; SIGKILL after 20 s. */
  stop(): Promise<void>;
  /** On the same port and data, after `kill` or `stop`; resolves when it listens. */
  restart(): Promise<void>;
}

export interface EngineCommand {
  url: string;
  port: number;
  command: string;
  args: string[];
  env?: Record<string, string>;
  /** What it prints goes here; shown when it does not start. */
  log: string;
  /** How long it may take until it listens. */
  start_ms?: number;
}

const started = new Set<ChildProcess>();
const folders = new Set<string>();
process.once('exit', () => {
  for (const child of started) child.kill('SIGKILL');
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

/**
 * A folder for what an engine keeps and prints. It outlives the engine, which may be started again on it, and goes with
 * the run: its script removes the run's own folder; without one, the end of this process does.
 */
export function engineFolder(name: string): string {
  const run = process.env.LUMIO_ENGINES_RUN;
  const folder = mkdtempSync(join(run ?? tmpdir(), `lumio-${name}-`));
  if (!run) folders.add(folder);
  return folder;
}

/** Starts a program and waits until it listens on its port. */
export async function startEngine(command: EngineCommand): Promise<Engine> {
  let child: ChildProcess | undefined;
  const start = async () => {
    const out = openSync(command.log, 'a');
    const starting = spawn(command.command, command.args, {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...command.env },
      stdio: ['ignore', out, out],
    });
    closeSync(out);
    child = starting;
    started.add(starting);
    starting.once('exit', () => started.delete(starting));
    remember(starting.pid!);
    const deadline = Date.now() + (command.start_ms ?? PATIENCE_MS);
    while (!(await listens(command.port))) {
      if (starting.exitCode !== null || starting.signalCode !== null || Date.now() > deadline) {
        starting.kill('SIGKILL');
        const said = readFileSync(command.log, 'utf8').slice(-3000);
        throw new Error(`${command.command} does not listen on ${command.port}:\n${said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const end = async (signal: 'SIGKILL' | 'SIGTERM') => {
    const ending = child;
    child = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const ended = new Promise((resolve) => ending.once('exit', resolve));
    ending.kill(signal);
    const timer = setTimeout(() => ending.kill('SIGKILL'), 20_000);
    await ended;
    clearTimeout(timer);
  };
  await start();
  return {
    url: command.url,
    get pid() {
      return child?.pid ?? 0;
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    restart: start,
  };
}

/** Written down so that the end of the run finds what a test file left behind. */
function remember(pid: number): void {
  const run = process.env.LUMIO_ENGINES_RUN;
  if (run) appendFileSync(join(run, 'pids'), `${pid}\n`);
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** A free port below 32768: above it an outgoing connection may take the port while its engine is down. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const free = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (free) return port;
  }
}
