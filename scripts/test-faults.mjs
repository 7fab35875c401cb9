// npm run test:faults: breaks what the server runs on, and checks what it promised. Fails when a test was skipped or none ran.
// LUMIO_FAULT_DOSE=full injects what takes hours; LUMIO_TEST_SEED repeats a run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fetchFaultTools } from './engines/faults.mjs';
import { build, install, root } from './prepare.mjs';

install({ dev: true });
await build();
fetchFaultTools();
const folder = mkdtempSync(join(tmpdir(), 'lumio-faults-report-'));
const report = join(folder, 'report.json');
const jest = join(root, 'node_modules/jest/bin/jest.js');
const args = ['--config', 'jest.faults.config.cjs', '--forceExit', '--json', `--outputFile=${report}`];
const { status } = spawnSync(process.execPath, [jest, ...args, ...process.argv.slice(2)], {
  cwd: root,
  stdio: ['inherit', 'ignore', 'inherit'],
});
const { numPassedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(report, 'utf8'));
rmSync(folder, { recursive: true });
const skipped = numPendingTests + numTodoTests;
// A run of some tests by name (-t) skips the others by intent.
const chosen = process.argv.includes('-t');
if (skipped > 0 && !chosen) console.error(`fault stage: ${skipped} tests were skipped, which counts as failed`);
if (numPassedTests === 0) console.error('fault stage: no test ran');
process.exit(status !== 0 || numPassedTests === 0 || (skipped > 0 && !chosen) ? 1 : 0);
