// A fresh clone starts with `npm start` alone, in a folder that only its user may enter; then stops cleanly and starts
// warm. Runs as the current user; with --ordinary-user, as `nobody` when the current user is root.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../prepare.mjs';

const LIMITS = { first_ms: 60_000, warm_ms: 5_000 };
const own = process.getuid();
const current = { name: own === 0 ? 'root' : `the ordinary user ${own}` };
const ordinary = process.argv.includes('--ordinary-user');
const user = ordinary && own === 0 ? { name: 'nobody', ...idsOf('nobody') } : current;
if (user.uid === 0) throw new Error('nobody is root here: an ordinary user is needed');

const folder = mkdtempSync(join(tmpdir(), 'lumio-clone-'));
try {
  run('git', ['clone', '--quiet', root, join(folder, 'lumio')]);
  if (user.uid !== undefined) run('chown', ['-R', `${user.uid}:${user.gid}`, folder]);
  chmodSync(folder, 0o700);
  const first = await startAndStop(join(folder, 'lumio'), user);
  const warm = await startAndStop(join(folder, 'lumio'), user);
  console.log(`${user.name}: ready after ${first} ms the first time (install included), ${warm} ms warm`);
  if (first > LIMITS.first_ms || warm > LIMITS.warm_ms)
    console.log(`note: over the bar of ${LIMITS.first_ms} / ${LIMITS.warm_ms} ms on this run`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function idsOf(name) {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line.split(':');
  return { uid: Number(uid), gid: Number(gid) };
}

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed (code ${status})`);
}

/**
 * Starts, waits for the ready line and a healthy answer, stops by SIGINT to the server itself; returns the milliseconds
 * to ready.
 */
async function startAndStop(cwd, user) {
  const started = Date.now();
  const home = join(cwd, '..');
  const env = {
    ...process.env,
    HOME: home,
    npm_config_cache: join(home, '.npm'),
    LUMIO_PORT: '0',
    LUMIO_METRICS__PORT: '0',
  };
  if (user.uid === undefined) {
    delete env.npm_config_cache;
    env.HOME = process.env.HOME;
  }
  const npm = spawn('npm', ['start'], {
    cwd,
    env,
    uid: user.uid,
    gid: user.gid,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const url = await new Promise((ready, fail) => {
    const timer = setTimeout(() => fail(new Error(`not ready within 360 s:\n${output}`)), 360_000);
    const take = (chunk) => {
      output += chunk;
      const line = /lumio ready at (http:\S+)/.exec(output);
      if (!line) return;
      clearTimeout(timer);
      ready(line[1]);
    };
    npm.stdout.on('data', take);
    npm.stderr.on('data', take);
    npm.once('exit', (code) => fail(new Error(`npm start ended with code ${code}:\n${output}`)));
  });
  const took = Date.now() - started;
  const health = await (await fetch(`${url}/v1/health`)).json();
  if (health.data.status !== 'healthy') throw new Error(`not healthy: ${JSON.stringify(health)}`);
  const lock = join(cwd, '.lumio/lumio.lock');
  const runs_as = statSync(lock).uid;
  if (runs_as !== (user.uid ?? own)) throw new Error(`${user.name}: the server runs as the user ${runs_as}`);
  const { pid } = JSON.parse(readFileSync(lock, 'utf8'));
  process.kill(pid, 'SIGINT');
  await stopped(pid);
  return took;
}

async function stopped(pid) {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((wait) => setTimeout(wait, 50));
  }
  throw new Error(`the server ${pid} did not stop within 60 s of SIGINT`);
}
