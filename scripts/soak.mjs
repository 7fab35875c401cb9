// npm run soak -- [--kafka] --seconds N [--seed S]: a randomised kill loop with a model; see test/faults/soak.ts. npm
// run soak -- --faults [--rows 1,14]: the full dose of every fault, or of these rows of docs/reliability.md. Hours in
// all.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { installEngines } from './engines/install.mjs';
import { build, install, root } from './prepare.mjs';

/** Rows with a part among the tests of the engines: three brokers, the adapters' own watchdog. */
const WITH_ENGINES = { 7: 'kafka-cluster', 8: 'kafka-projections', 9: 'kafka-watchdog' };

const node = (...args) => {
  const env = { ...process.env, ...(faults && { LUMIO_FAULT_DOSE: 'full' }) };
  return spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env }).status ?? 1;
};

const { faults, rows, kafka } = parseArgs({
  options: { faults: { type: 'boolean' }, rows: { type: 'string' }, kafka: { type: 'boolean' } },
  strict: false,
}).values;
if (rows !== undefined && !/^\d+(,\d+)*$/.test(String(rows))) {
  console.error('usage: npm run soak -- --faults [--rows 1,14]');
  process.exit(2);
}
install({ dev: true });
process.exit(faults ? fullDoses() : await killLoop());

async function killLoop() {
  if (kafka) installEngines(['kafka']);
  await build();
  return node('--enable-source-maps', join(root, 'dist/test/faults/soak.js'), ...process.argv.slice(2));
}

/** Tests name their rows: "row 7: …", "rows 8, 21: …". */
function fullDoses() {
  const wanted = rows?.split(',');
  const name = `rows? (\\d+, )*(${wanted?.join('|') ?? '\\d+'})\\b`;
  const files = Object.entries(WITH_ENGINES).flatMap(([row, file]) => (wanted?.includes(row) === false ? [] : [file]));
  const failed = node(join(root, 'scripts/test-faults.mjs'), '-t', name);
  if (files.length === 0) return failed;
  return node(join(root, 'scripts/test-engines.mjs'), ...files, '-t', name) || failed;
}
