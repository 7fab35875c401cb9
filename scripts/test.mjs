// npm test: installs, compiles (end-to-end tests start the compiled server), then runs jest with the arguments given.
// Fails when a test fails, and when one leaves a file or folder behind.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, install, root } from './prepare.mjs';
import { JEST_CACHE, openRunFolder } from './run-folder.mjs';

install({ dev: true });
await build();
const jest = join(root, 'node_modules/jest/bin/jest.js');
const run = openRunFolder();
const { status } = spawnSync(process.execPath, [jest, JEST_CACHE, ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: run.env,
});
const clean = run.close();
process.exit(status === 0 && !clean ? 1 : (status ?? 1));
