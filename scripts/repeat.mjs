// npm run repeat -- TIMES SCRIPT [arguments]: runs one of the test scripts again and again, for tests that fail now and
// then, for instance npm run repeat -- 20 test:faults process. Prints one line for each run and at the end each failed
// test with its number; the output of each failed run is kept in a file that is named. Ends with 1 when a run failed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './prepare.mjs';

const [times, script, ...args] = process.argv.slice(2);
if (!(Number(times) > 0) || script === undefined) {
  console.error('usage: npm run repeat -- TIMES SCRIPT [arguments]');
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), 'lumio-repeat-'));
const failures = new Map();
let failed = 0;
for (let run = 1; run <= Number(times); run += 1) {
  const started = Date.now();
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script, '--', ...args], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  const seconds = Math.round((Date.now() - started) / 1000);
  if (status === 0) {
    console.log(`run ${run}: passed, ${seconds} s`);
    continue;
  }
  failed += 1;
  const file = join(folder, `${run}.log`);
  writeFileSync(file, `${stdout}\n${stderr}`);
  const names = new Set(
    `${stdout}\n${stderr}`.match(/^ {2}● .+$/gm)?.map((line) => line.slice(4)) ?? ['no test is named'],
  );
  for (const name of names) failures.set(name, (failures.get(name) ?? 0) + 1);
  console.log(`run ${run}: failed, ${seconds} s, ${file}\n  ${[...names].join('\n  ')}`);
}
console.log(`${times} runs of ${[script, ...args].join(' ')}: ${failed} failed`);
for (const [name, count] of failures) console.log(`  ${count} times: ${name}`);
process.exit(failed > 0 ? 1 : 0);
