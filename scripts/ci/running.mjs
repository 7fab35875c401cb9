// A compiled server for the checks of this folder, started as a reader of README.md would, on free ports.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../prepare.mjs';

const READY_WITHIN_MS = 120_000;

/**
 * Starts Lumio with its data in `<folder>/.lumio` and resolves when it serves. `stop` ends it and waits; `output`
 * returns all that it printed.
 */
export async function startLumio(folder, settings = {}) {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LUMIO_')));
  const env = {
    ...inherited,
    LUMIO_DATA_DIR: join(folder, '.lumio'),
    LUMIO_PORT: '0',
    LUMIO_METRICS__PORT: '0',
    LUMIO_LOG_LEVEL: 'warn',
    // A read after a write returns the new data, however late the projector of a busy machine is.
    LUMIO_READ_MODELS__WAIT: '30s',
    LUMIO_STOP_WITHIN: '60s',
    ...settings,
  };
  const child = spawn(process.execPath, [join(root, 'dist/bin/main.js'), 'start'], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const ended = new Promise((done) => child.once('exit', done));
  const running = () => child.exitCode === null && child.signalCode === null;
  const url = () => /lumio ready at (http:\S+)/.exec(output)?.[1];
  const stop = async () => {
    if (running()) child.kill('SIGTERM');
    return ended;
  };
  try {
    await waitFor(
      'the server',
      () => url() !== undefined || !running(),
      () => output,
      READY_WITHIN_MS,
    );
    if (!running()) throw new Error(`the server ended before it was ready:\n${output}`);
  } catch (error) {
    await stop();
    throw error;
  }
  return { base_url: url(), output: () => output, stop };
}

/**
 * Polls until the condition holds.
 * @throws Error after the deadline, with the text of `detail`
 */
export async function waitFor(what, holds, detail = () => '', within_ms = 60_000) {
  const deadline = Date.now() + within_ms;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`waited ${within_ms} ms for ${what} ${detail()}`);
    await new Promise((wait) => setTimeout(wait, 50));
  }
}
