// npm run soak -- [--kafka] --seconds N [--seed S]: a randomised kill loop with a model; see test/faults/soak.ts.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { installEngines } from './engines/install.mjs';
import { build, install, root } from './prepare.mjs';

install({ dev: true });
if (process.argv.includes('--kafka')) installEngines(['kafka']);
await build();
const script = join(root, 'dist/test/faults/soak.js');
const { status } = spawnSync(process.execPath, ['--enable-source-maps', script, ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
