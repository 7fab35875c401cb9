import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, ROOT, rounded, type TrackOptions } from '../harness';
import { check, report } from '../report';

/** `npm start` on its own PostgreSQL, from the command to its ready line: the first time, and with existing data. */
export async function run(options: TrackOptions): Promise<boolean> {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-bench-start-'));
  try {
    const cold = await start(data_dir);
    const warm: number[] = [];
    for (let round = 0; round < (options.smoke ? 1 : 7); round += 1) warm.push(await start(data_dir));
    const rounds = { cold_seconds: rounded(cold), warm_seconds: warm.map(rounded) };
    console.log('\nstart: seconds to the ready line', rounds);
    const checks = [check('ready warm, median of the rounds, seconds', median(warm), 5)];
    return report('start', [], { ...rounds, checks }, options);
  } finally {
    rmSync(data_dir, { recursive: true, force: true });
  }
}

async function start(data_dir: string): Promise<number> {
  const from = performance.now();
  const env = { ...process.env, LUMIO_DATA_DIR: data_dir, LUMIO_PORT: '0', LUMIO_METRICS__PORT: '0' };
  const child = spawn('npm', ['start', '--silent'], {
    cwd: ROOT,
    env: { ...env, NODE_ENV: 'production' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  const exited = new Promise<void>((done) => child.once('exit', () => done()));
  const seconds = await new Promise<number>((ready, fail) => {
    const take = (chunk: Buffer) => {
      output += chunk.toString();
      if (/lumio ready at http:/.test(output)) ready((performance.now() - from) / 1000);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.once('exit', (code) => fail(new Error(`the start ended with code ${code}:\n${output}`)));
  });
  // npm does not pass signals on reliably; its process group is ours alone.
  process.kill(-child.pid!, 'SIGTERM');
  await exited;
  return seconds;
}
