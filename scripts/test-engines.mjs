// npm run test:engines: the adapters against the real engines. Arguments go to jest (a part of a file's path runs that
// file alone). npm run test:contracts adds --contracts: the contract suites alone, on Kafka, Redis and S3. Fails when a
// test fails, when an engine cannot be installed, when anything was skipped, and when a file or folder was left behind.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { folder, installEngines } from './engines/install.mjs';
import { build, install, root } from './prepare.mjs';
import { JEST_CACHE, openRunFolder } from './run-folder.mjs';

install({ dev: true });
const contracts = process.argv[2] === '--contracts';
const versions = installEngines(contracts ? ['kafka', 'redis', 'versitygw'] : undefined);
await build();

const run = mkdtempSync(join(tmpdir(), 'lumio-engines-'));
const report = join(run, 'report.json');
const jest = join(root, 'node_modules/jest/bin/jest.js');
// Native clients of the engines keep handles of their own; a run that is over must end.
const temporary = openRunFolder();
const args = [
  JEST_CACHE,
  '--config',
  'jest.engines.config.cjs',
  '--forceExit',
  '--json',
  `--outputFile=${report}`,
  ...(contracts ? ['test/engines/contracts', ...process.argv.slice(3)] : process.argv.slice(2)),
];
const { status } = spawnSync(process.execPath, [jest, ...args], {
  cwd: root,
  // jest's own report comes on stderr; --json would print the same once more.
  stdio: ['inherit', 'ignore', 'inherit'],
  env: { ...temporary.env, LUMIO_ENGINES_DIR: folder, LUMIO_ENGINES_RUN: run },
});
let failed = status !== 0;
try {
  const { numPassedTests, numPendingTests, numTodoTests } = JSON.parse(readFileSync(report, 'utf8'));
  const skipped = numPendingTests + numTodoTests;
  // A run of some tests by name (-t) skips the others by intent.
  if (skipped > 0 && !process.argv.includes('-t')) {
    console.error(`lumio: ${skipped} engine tests were skipped; a skipped engine is not a tested one`);
    failed = true;
  }
  const engines = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  console.error(`lumio: ${numPassedTests} tests passed; engines: ${engines.join(', ')}`);
} catch (error) {
  console.error(`lumio: jest left no report (${error.message})`);
  failed = true;
}
rmSync(run, { recursive: true, force: true, maxRetries: 5 });
if (!temporary.close()) failed = true;
process.exit(failed ? 1 : 0);
