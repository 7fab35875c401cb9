// npm run bench [track] [--smoke]: installs the peers, compiles, and runs each track in a process of its own, next to
// the engine's core. With --report it writes bench/RESULTS.md instead.
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeReport } from './bench-report.mjs';
import { build, install, root } from './prepare.mjs';

if (process.argv.includes('--report')) {
  writeReport(join(root, 'bench/results'), join(root, 'bench/RESULTS.md'));
  process.exit(0);
}
const smoke = process.argv.includes('--smoke');
const asked = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const all = readdirSync(join(root, 'bench/tracks')).flatMap((file) => /^([\w-]+)\.ts$/.exec(file)?.[1] ?? []);
const unknown = asked.filter((track) => !all.includes(track));
if (unknown.length > 0) {
  console.error(`no track "${unknown[0]}"; there are: ${all.join(', ')}`);
  process.exit(2);
}

install({ dev: true });
installPeers();
await build();

// The engine keeps to core 0 (bench/postgres.ts); the load stays off that core.
const beside = cpus().length > 1 ? ['taskset', '-c', `1-${cpus().length - 1}`] : [];
const ran = join(mkdtempSync(join(tmpdir(), 'lumio-bench-')), 'ran');
let failed = 0;
for (const track of asked.length > 0 ? asked : all) {
  const started = Date.now();
  const command = [...beside, process.execPath, join(root, 'dist/bench/main.js'), track, ...(smoke ? ['--smoke'] : [])];
  const { status } = spawnSync(command[0], command.slice(1), {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, NODE_ENV: 'production', BENCH_RAN: ran },
  });
  if (status !== 0) failed += 1;
  const seconds = Math.round((Date.now() - started) / 1000);
  console.log(`${track}: ${seconds} s`);
  const { CI_RESULTS_FILE: results, CI_STAGE: stage } = process.env;
  const failures = status === 0 ? [] : [{ title: `exit code ${status}`, message: '' }];
  const line = { stage, suite: `bench/${track}`, seconds, tests: 1, failed: failures.length, failures };
  if (results) appendFileSync(results, `${JSON.stringify(line)}\n`);
}
// Every track by name, so that a missing one, or one without a figure, is noticed.
const TRACKS = [
  'access',
  'append',
  'consume',
  'channels',
  'end-to-end',
  'eventsub',
  'fanout',
  'graphql',
  'growth',
  'idle',
  'idle-projections',
  'outbox',
  'project',
  'rest',
  'shares',
  'start',
  'webhook',
];
const unnamed = all.filter((track) => !TRACKS.includes(track));
if (unnamed.length > 0) {
  console.error(`bench: not among the tracks by name: ${unnamed.join(', ')}`);
  failed += unnamed.length;
}
const done = existsSync(ran) ? readFileSync(ran, 'utf8').split('\n') : [];
const missing = (asked.length > 0 ? asked : [...new Set([...TRACKS, ...all])]).filter((track) => !done.includes(track));
if (missing.length > 0) {
  console.error(`bench: no figures of ${missing.join(', ')}`);
  failed += missing.length;
}
process.exit(failed > 0 ? 1 : 0);

function installPeers() {
  const folder = join(root, 'bench');
  const lock = (path) => (existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {});
  const have = lock(join(folder, 'node_modules/.package-lock.json'));
  const want = lock(join(folder, 'package-lock.json'));
  if (
    Object.entries(want).every(
      ([path, { version, optional }]) => path === '' || have[path]?.version === version || optional,
    )
  )
    return;
  console.error('lumio: installing benchmark peers (npm ci) …');
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) process.exit(1);
}
