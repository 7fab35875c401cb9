// npm run test:faults: breaks the server's dependencies, and checks its guarantees. Fails when a test failed, was
// skipped or left a file or folder behind, and when none ran. LUMIO_FAULT_DOSE=full injects faults that take hours;
// LUMIO_TEST_SEED repeats a run.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchFaultTools } from './engines/faults.mjs';
import { build, install, root } from './prepare.mjs';
import { JEST_CACHE, openRunFolder } from './run-folder.mjs';

install({ dev: true });
await build();
fetchFaultTools();
const folder = mkdtempSync(join(tmpdir(), 'lumio-faults-report-'));
const report = join(folder, 'report.json');
const jest = join(root, 'node_modules/jest/bin/jest.js');
const temporary = openRunFolder();
const args = [JEST_CACHE, '--config', 'jest.faults.config.cjs', '--forceExit', '--json', `--outputFile=${report}`];
const { status } = spawnSync(process.execPath, [jest, ...args, ...process.argv.slice(2)], {
  cwd: root,
  stdio: ['inherit', 'ignore', 'inherit'],
  env: { ...temporary.env, LUMIO_ENGINES_RUN: folder },
});
// A killed run leaves no report; its status is checked below.
const none = { numPassedTests: 0, numPendingTests: 0, numTodoTests: 0 };
const counts = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : none;
const { numPassedTests, numPendingTests, numTodoTests } = counts;
rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
const skipped = numPendingTests + numTodoTests;
// A run of some tests by name (-t) skips the others by intent.
const chosen = process.argv.includes('-t');
if (skipped > 0 && !chosen) console.error(`fault stage: ${skipped} tests were skipped, which counts as failed`);
if (numPassedTests === 0) console.error('fault stage: no test ran');
const clean = temporary.close();
process.exit(!clean || status !== 0 || numPassedTests === 0 || (skipped > 0 && !chosen) ? 1 : 0);
